import {
  OutcomeUnknown,
  StoreBusy,
  StoreUnavailable,
  WrongExpectedRevision,
} from '../../event-store/port.ts';
import type { Config } from '../config/config.ts';
import { NEEDS_DIRECT } from './pool.ts';

/**
 * Codes of transient errors: Node's codes of DNS and sockets, and SQLSTATEs; two characters stand for a class of
 * SQLSTATEs.
 */
const TRANSIENT_CODES: ReadonlySet<string> = new Set(
  [
    // DNS: the name is temporarily unknown, or the resolver does not answer.
    'ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NODATA EAI_NONAME ESERVFAIL ETIMEOUT ENODATA EREFUSED',
    // Sockets.
    'ECONNREFUSED ECONNRESET ECONNABORTED EPIPE ETIMEDOUT EHOSTUNREACH EHOSTDOWN ENETUNREACH',
    'ENETDOWN EADDRNOTAVAIL EMFILE ENFILE ENOBUFS',
    // undici.
    'UND_ERR_CONNECT_TIMEOUT UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT UND_ERR_SOCKET',
    // PostgreSQL: connection, transaction rolled back, resources, operator intervention, system error.
    '08 40 53 57 58',
    // Lock not available; a transaction that was idle too long, or read-only after a failover.
    '55P03 25P03 25P04 25006',
  ].flatMap((codes) => codes.split(' ')),
);

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
export function isTransient(error: unknown): boolean {
  let cause = error;
  for (let depth = 0; depth < MAX_CAUSES && cause instanceof Error; depth += 1) {
    if (isTransientAlone(cause)) return true;
    cause = cause.cause;
  }
  return false;
}

function isTransientAlone(error: Error): boolean {
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
}

/** A configured store cannot be used. The message is one line with the variable, the address and the cause. */
export class Unreachable extends Error {
  constructor(variable: string, url: string, cause: unknown) {
    super(`${variable}: ${addressOf(url)} cannot be used: ${causeOf(cause)}`, { cause });
  }
}

/** Queries the event store if one is configured. @returns the problem; null if it answers */
export async function eventStoreProblem(
  { EVENTSTORE_URL: url }: Pick<Config, 'EVENTSTORE_URL'>,
  store: { head(): Promise<unknown> },
): Promise<Unreachable | null> {
  if (url === undefined) return null;
  return store.head().then(
    () => null,
    (error: unknown) => new Unreachable('EVENTSTORE_URL', url, error),
  );
}

/** Returns a URL without credentials and parameters. */
export function addressOf(url: string): string {
  const [, scheme = '', rest = ''] = /^([a-z+]+:\/\/)(.*)$/i.exec(url) ?? [];
  const [authority = ''] = rest.split('?', 1);
  return `${scheme}${authority.slice(authority.lastIndexOf('@') + 1)}`;
}

const HINTS: readonly [RegExp, string][] = [
  [
    /self.signed|unable to (get|verify)|unknown (ca|authority)/i,
    "name the authority's certificate with tlsCAFile=FILE in EVENTSTORE_URL",
  ],
  [
    /wrong version number|EPROTO|packet length too long/i,
    'tls=false in EVENTSTORE_URL is for a server without TLS',
  ],
  [/unsupported startup parameter/i, NEEDS_DIRECT],
];

/** Returns the innermost cause in one line, because wrappers say less. */
function causeOf(error: unknown): string {
  let inner = error;
  while (inner instanceof Error && (inner.cause ?? firstOf(inner))) inner = inner.cause ?? firstOf(inner);
  const text = (inner instanceof Error && inner.message ? inner.message : String(inner)).replaceAll(
    /\s+/g,
    ' ',
  );
  const hint = HINTS.find(([pattern]) => pattern.test(text))?.[1];
  return hint === undefined ? text : `${text} (${hint})`;
}

/** A name with several addresses fails with one error for each. */
const firstOf = (error: Error): unknown => (error instanceof AggregateError ? error.errors[0] : undefined);
