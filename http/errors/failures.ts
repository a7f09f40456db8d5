/** Maps exceptions to error codes: one of the 503 codes, never a negative answer. */
import { OutcomeUnknown, StoreBusy, StoreUnavailable } from '../../event-store/port.ts';
import { WorkRefused } from '../../platform/limits/semaphore.ts';
import { isTransient } from '../../platform/postgres/unavailable.ts';
import type { ErrorCode } from './error-catalog.ts';

/** A read or a command took longer than a caller should wait. The work may have been done. Its code makes processors retry. */
export class BackendTimeout extends Error {
  readonly code = 'ETIMEDOUT';
}

/** Tracking could not confirm its append. The same request may be sent again. */
export class TrackingUnavailable extends Error {}

/** Returns whether it is unknown if the command succeeded. */
export const isUnknownOutcome = (failure: unknown): boolean => failure instanceof OutcomeUnknown;

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
  return isTransient(failure) ? 'backend_unavailable' : 'service_unavailable';
}

function knownFailure(error: Error): ErrorCode | null {
  if (error instanceof StoreBusy || error instanceof WorkRefused) return 'api_busy';
  if (error instanceof BackendTimeout) return 'backend_timeout';
  if (error instanceof TrackingUnavailable) return 'tracking_unavailable';
  if (error instanceof StoreUnavailable || error instanceof OutcomeUnknown) return 'backend_unavailable';
  // pg's own limit on a query comes without a code.
  const isTimeout = 'code' in error && error.code === QUERY_CANCELED;
  return isTimeout || error.message === 'Query read timeout' ? 'backend_timeout' : null;
}
