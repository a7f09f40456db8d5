/** Starts work in the service and polls until it is done. */
import type { Answer } from './attempt.ts';
import type { Caller } from './call.ts';
import { amended } from './errors.ts';
import type { CompletedReveal, Lookup, Pending, Reveal } from './generated.ts';
import type { OperationId } from './operations.ts';
import type { Limits, PollOptions } from './options.ts';

/** The delay when a response names none or zero. */
const POLL_SECONDS = 15;

interface Work<State, Done extends State> {
  readonly operation: OperationId;
  readonly ask: () => Promise<Answer<State>>;
  readonly askAgain: (last: State) => Promise<Answer<State>>;
  readonly isDone: (state: State) => state is Done;
}

const untilDone = async <State extends Pending | Lookup | Reveal, Done extends State>(
  { operation, ask, askAgain, isDone }: Work<State, Done>,
  { wait }: Caller,
  limits: Limits,
): Promise<Done> => {
  let { body, retryAfterSeconds } = await ask();
  while (!isDone(body)) {
    try {
      await wait(operation, (retryAfterSeconds || POLL_SECONDS) * 1_000, limits);
      ({ body, retryAfterSeconds } = await askAgain(body));
    } catch (error) {
      // The work was accepted: a refused poll does not refuse the work.
      throw amended(error, { unfinished: body, outcome: 'unknown' });
    }
  }
  return body;
};

export interface LookupOptions extends PollOptions {
  /** Waits for the refresh of a stale result as well, instead of returning the saved one. */
  readonly waitForRefresh?: boolean | undefined;
}

/** POST, then GET until there is a result. */
export const lookUp = (caller: Caller, ip: string, options: LookupOptions): Promise<Lookup> => {
  const limits = caller.limitsOfPolling(options);
  const post = (): Promise<Answer<Lookup | Pending>> =>
    caller.call('requestLookup', { body: { ip } }, limits);
  const get = (): Promise<Answer<Lookup | Pending>> => caller.call('readLookup', { query: { ip } }, limits);
  const isFresh = ({ stale, refresh_status }: Lookup) => !stale && refresh_status === 'not_needed';
  const isDone = (state: Lookup | Pending): state is Lookup =>
    state.status === 'complete' && (options.waitForRefresh !== true || isFresh(state));
  // A GET starts nothing: deferred work must be requested again.
  const isUnderWay = (state: Lookup | Pending) =>
    state.status !== 'complete' || state.refresh_status === 'pending';
  const askAgain = (last: Lookup | Pending) => (isUnderWay(last) ? get() : post());
  return untilDone({ operation: 'readLookup', ask: post, askAgain, isDone }, caller, limits);
};

export interface RevealOptions extends PollOptions {
  /** A UUID v4, one for each reveal. Default: a new one. */
  readonly idempotencyKey?: string | undefined;
}

export interface Revealed {
  /** Reveal again with it to get the same reveal: no second unit. */
  readonly idempotencyKey: string;
  readonly receipt: CompletedReveal;
}

export const newIdempotencyKey = (): string => globalThis.crypto.randomUUID();

/** POST with one key, repeated as needed, then GET of the receipt until it is complete. */
export const reveal = async (
  caller: Caller,
  sessionId: string,
  { idempotencyKey = newIdempotencyKey(), ...options }: RevealOptions,
): Promise<Revealed> => {
  const limits = caller.limitsOfPolling(options);
  const ask = () =>
    caller.call(
      'revealSession',
      { path: { session_id: sessionId }, header: { 'Idempotency-Key': idempotencyKey } },
      limits,
    );
  const askAgain = ({ reveal_id }: Reveal) => caller.call('getReveal', { path: { reveal_id } }, limits);
  const isDone = (state: Reveal): state is Reveal & CompletedReveal => state.status === 'complete';
  try {
    const receipt = await untilDone({ operation: 'getReveal', ask, askAgain, isDone }, caller, limits);
    return { idempotencyKey, receipt };
  } catch (error) {
    throw amended(error, { idempotencyKey });
  }
};
