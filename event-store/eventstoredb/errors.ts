import {
  AccessDeniedError,
  MaxAppendSizeExceededError,
  NotLeaderError,
  StreamDeletedError,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import {
  AppendTooLarge,
  OutcomeUnknown,
  StoreBusy,
  StoreUnavailable,
  StreamExpired,
  WrongExpectedRevision,
} from '../port.ts';

/** Errors whose text alone shows that the request was never processed. */
const NEVER_TAKEN_UP =
  /No connection established|Name resolution failed|Channel closed before call started|Channel has been shut down|Failed to discover|Server Is Not Ready|No leader info available|waiting for (name resolution|metadata filters|LB pick)/i;

/** Maps a client error of a write. Unless the write is known to have been rejected, its outcome is unknown. */
export const writeError = (error: unknown, stream: string): Error => {
  if (error instanceof OutcomeUnknown) return error;
  if (error instanceof WrongExpectedVersionError) {
    // For a missing stream the server reports 'no_stream' after an append and -1 after a tombstone.
    const actual = Number(error.actualVersion);
    return new WrongExpectedRevision(stream, actual >= 0 ? actual : null);
  }
  if (error instanceof StreamDeletedError) return new StreamExpired(stream);
  if (error instanceof MaxAppendSizeExceededError) return new AppendTooLarge(stream);
  const text = String(error);
  if (/Server Is Too Busy/.test(text)) return new StoreBusy(text, { cause: error });
  const refused = error instanceof NotLeaderError || error instanceof AccessDeniedError;
  if (refused || NEVER_TAKEN_UP.test(text)) return new StoreUnavailable(text, { cause: error });
  return new OutcomeUnknown(text, { cause: error });
};

/** Maps a client error of a read, which is always safe to retry. */
export const readError = (error: unknown): StoreUnavailable =>
  error instanceof StoreUnavailable ? error : new StoreUnavailable(String(error), { cause: error });
