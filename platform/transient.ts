import { OutcomeUnknown, StoreBusy, StoreUnavailable, WrongExpectedRevision } from '../event-store/port.ts';

/**
 * Codes of transient errors: Node's codes of DNS and sockets, and SQLSTATEs; two characters stand for a class of
 * SQLSTATEs.
 */
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  // DNS: the name is temporarily unknown, or the resolver does not answer.
  ...[
    'ENOTFOUND',
    'EAI_AGAIN',
    'EAI_FAIL',
    'EAI_NODATA',
    'EAI_NONAME',
    'ESERVFAIL',
    'ETIMEOUT',
    'ENODATA',
    'EREFUSED',
  ],
  // Sockets.
  ...[
    'ECONNREFUSED',
    'ECONNRESET',
    'ECONNABORTED',
    'EPIPE',
    'ETIMEDOUT',
    'EHOSTUNREACH',
    'EHOSTDOWN',
    'ENETUNREACH',
  ],
  ...['ENETDOWN', 'EADDRNOTAVAIL', 'EMFILE', 'ENFILE', 'ENOBUFS'],
  // undici.
  ...['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_SOCKET'],
  // PostgreSQL: connection, transaction rolled back, resources, operator intervention, system error.
  ...['08', '40', '53', '57', '58'],
  // Lock not available; a transaction that was idle too long, or read-only after a failover.
  ...['55P03', '25P03', '25P04', '25006'],
]);

/** Messages of `pg` errors without a code: the session ended or did not answer during the query. */
const CODELESS = new Set([
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'timeout expired',
  'Query read timeout',
  'timeout exceeded when trying to connect',
  'Cannot use a pool after calling end on the pool',
]);

/** Errors of the event store's port that are not caused by the request. */
const TRANSIENT_CLASSES = [StoreBusy, StoreUnavailable, OutcomeUnknown, WrongExpectedRevision] as const;

const MAX_CAUSES = 5;

/**
 * Returns whether an error is transient, so that repeating the same call may succeed. Decides by types and codes, including
 * those of its causes.
 */
export const isTransient = (error: unknown): boolean => {
  let cause = error;
  for (let depth = 0; depth < MAX_CAUSES && cause instanceof Error; depth += 1) {
    if (isTransientAlone(cause)) return true;
    cause = cause.cause;
  }
  return false;
};

const isTransientAlone = (error: Error): boolean => {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (TRANSIENT_CLASSES.some((kind) => error instanceof kind) || CODELESS.has(error.message)) return true;
  // `connect` over several addresses fails with the errors of all.
  if (error instanceof AggregateError) return error.errors.some(isTransient);
  if (typeof code !== 'string') return false;
  if (TRANSIENT_CODES.has(code)) return true;
  // The socket file of a PostgreSQL that is still starting.
  if (code === 'ENOENT') return syscall === 'connect';
  const isSqlState = /^[0-9A-Z]{5}$/.test(code) && 'severity' in error;
  return isSqlState && TRANSIENT_CODES.has(code.slice(0, 2));
};
