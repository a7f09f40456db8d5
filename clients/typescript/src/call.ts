/** Calls operations with as many attempts as are safe and useful. */
import { type Answer, type AnyRequest, createAttempt, named } from './attempt.ts';
import { amended, DoorplateError } from './errors.ts';
import { endpoints } from './generated.ts';
import { type BodyOf, isRepeatable, type OperationId, type RequestOf } from './operations.ts';
import type { CallOptions, ClientOptions, Limits, PollOptions } from './options.ts';
import { realTime } from './time.ts';

const TIMEOUT_MS = 15_000;
const RETRIES = 4;
const DEADLINE_MS = 120_000;
/** The longest wait between two attempts of a call without a deadline. */
const LONGEST_WAIT_MS = 30_000;
/** The wait after the first attempt, doubled after each further one. */
const FIRST_WAIT_MS = 500;

export interface Caller {
  call<Id extends OperationId>(id: Id, request: RequestOf<Id>, limits: Limits): Promise<Answer<BodyOf<Id>>>;
  /** A call without a deadline: the body of its response. */
  body<Id extends OperationId>(id: Id, request: RequestOf<Id>, options?: CallOptions): Promise<BodyOf<Id>>;
  /** The limits of a call that polls, from now on. */
  limitsOfPolling(options: PollOptions): Limits;
  /** Waits at least this long. @throws DoorplateError at once when the deadline comes first; or on the signal */
  wait(id: OperationId, ms: number, limits: Pick<Limits, 'deadlineAt' | 'signal'>): Promise<void>;
}

export const createCaller = (options: ClientOptions): Caller => {
  const time = options.time ?? realTime;
  const attempt = createAttempt(options, time);

  const limitsOf = (own: CallOptions): Limits => ({
    timeoutMs: own.timeoutMs ?? options.timeoutMs ?? TIMEOUT_MS,
    retries: own.retries ?? options.retries ?? RETRIES,
    signal: own.signal,
    deadlineAt: null,
  });
  const limitsOfPolling = (own: PollOptions): Limits => ({
    ...limitsOf(own),
    deadlineAt: time.now() + (own.deadlineMs ?? options.deadlineMs ?? DEADLINE_MS),
  });

  const wait: Caller['wait'] = async (id, ms, { deadlineAt, signal }) => {
    const left = deadlineAt === null ? Infinity : deadlineAt - time.now();
    if (ms > left) {
      throw new DoorplateError(`${named(id)}: not done before the deadline; it goes on without you`, {
        kind: 'deadline',
        outcome: 'unknown',
        operation: id,
        retryAfterSeconds: Math.ceil(ms / 1_000),
      });
    }
    try {
      await time.sleep(jittered(ms, left), signal);
    } catch (reason) {
      throw new DoorplateError(
        `${named(id)}: aborted`,
        { kind: 'aborted', outcome: 'unknown', operation: id },
        reason,
      );
    }
  };

  const call = async <Id extends OperationId>(id: Id, request: RequestOf<Id>, limits: Limits) => {
    const repeatable = isRepeatable(id, endpoints[id][0]);
    // One attempt with an unknown outcome makes the whole call's outcome unknown, whatever a later response says.
    let outcome: 'refused' | 'unknown' = 'refused';
    for (let attempts = 1; ; attempts += 1) {
      try {
        return (await attempt(id, request as AnyRequest, limits)) as Answer<BodyOf<Id>>;
      } catch (error) {
        if (!(error instanceof DoorplateError)) throw error;
        if (error.outcome === 'unknown') outcome = 'unknown';
        const { retryAfterSeconds } = error;
        // A delay of zero counts as no delay given.
        const ms = retryAfterSeconds ? retryAfterSeconds * 1_000 : FIRST_WAIT_MS * 2 ** (attempts - 1);
        const longest = limits.deadlineAt === null ? LONGEST_WAIT_MS : limits.deadlineAt - time.now();
        const again = attempts <= limits.retries && mayHelp(error, repeatable) && ms <= longest;
        if (!again) throw amended(error, { outcome });
        await wait(id, ms, limits).catch((stopped: unknown) => {
          throw amended(stopped, { outcome });
        });
      }
    }
  };

  return {
    call,
    body: async (id, request, own = {}) => (await call(id, request, limitsOf(own))).body,
    limitsOfPolling,
    wait,
  };
};

/** Whether another attempt is safe and may have another result. */
const mayHelp = ({ status }: DoorplateError, repeatable: boolean): boolean => {
  // A 429 is sent before anything is done.
  if (status === 429) return true;
  return repeatable && (status === null || status === 408 || status >= 500);
};

/** Adds up to a tenth, so that many callers do not return at once; never beyond the remaining time. */
const jittered = (ms: number, left: number): number =>
  ms + Math.random() * Math.min(ms / 10, (left - ms) / 2);
