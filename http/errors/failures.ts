/** Maps exceptions to error codes: one of the 503 codes, never a negative answer. */
import { OutcomeUnknown, StoreBusy, StoreUnavailable } from '../../event-store/port.ts';
import { WorkRefused } from '../../platform/limits/semaphore.ts';
import type { ErrorCode } from './error-catalog.ts';

/** A read or a command took longer than a caller should wait. The work may have been done. Its code makes processors retry. */
export class BackendTimeout extends Error {
  readonly code = 'ETIMEDOUT';
}

/** Tracking could not confirm its append. The same request may be sent again. */
export class TrackingUnavailable extends Error {}

/** Returns whether it is unknown if the command succeeded. */
export const isUnknownOutcome = (failure: unknown): boolean => failure instanceof OutcomeUnknown;

const CONNECTION_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  // too_many_connections
  '53300',
]);

/** PostgreSQL's query_canceled: what a statement_timeout ends with. */
const QUERY_CANCELED = '57014';

/** Wrappers such as slonik's keep the driver's error as their cause. */
const LONGEST_CAUSE_CHAIN = 5;

/** Returns the error code of an exception; `service_unavailable` for an unexpected one. */
export function failureCode(failure: unknown): ErrorCode {
  let error = failure;
  for (let depth = 0; depth < LONGEST_CAUSE_CHAIN && error instanceof Error; depth += 1) {
    const code = knownFailure(error);
    if (code !== null) return code;
    error = error.cause;
  }
  return 'service_unavailable';
}

function knownFailure(error: Error): ErrorCode | null {
  if (error instanceof StoreBusy || error instanceof WorkRefused) return 'api_busy';
  if (error instanceof BackendTimeout) return 'backend_timeout';
  if (error instanceof TrackingUnavailable) return 'tracking_unavailable';
  if (error instanceof StoreUnavailable || error instanceof OutcomeUnknown) return 'backend_unavailable';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  // pg's own limit on a query comes without a code.
  if (code === QUERY_CANCELED || error.message === 'Query read timeout') return 'backend_timeout';
  const connecting = 'syscall' in error && error.syscall === 'connect';
  return connecting || isConnectionFailure(code, error.message) ? 'backend_unavailable' : null;
}

function isConnectionFailure(code: string, message: string): boolean {
  if (CONNECTION_CODES.has(code) || /^(08...|57P0\d)$/.test(code)) return true;
  // pg gives these no code.
  return /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error)/.test(
    message,
  );
}
