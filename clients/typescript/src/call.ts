/** Calls operations with as many attempts as are safe and useful. */
import { type Answer, type AnyRequest, createAttempt, named } from './attempt.ts';
import { amended, DoorplateError } from './errors.ts';
import { endpoints } from './generated.ts';
import { type BodyOf, isRepeatable, type OperationId, type RequestOf } from './operations.ts';
import type { CallOptions, ClientOptions, Limits, PollOptions } from './options.ts';
import { realTime, type Time } from './time.ts';

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
  const wait = createWait(time);

  const call = async <Id extends OperationId>(id: Id, request: RequestOf<Id>, limits: Limits) => {
    // One attempt with an unknown outcome makes the whole call's outcome unknown, whatever a later response says.
    let outcome: 'refused' | 'unknown' = 'refused';
    for (let attempts = 1; ; attempts += 1) {
      try {
        return (await attempt(id, request as AnyRequest, limits)) as Answer<BodyOf<Id>>;
      } catch (error) {
        if (!(error instanceof DoorplateError)) throw error;
        if (error.outcome === 'unknown') outcome = 'unknown';
        const ms = waitAfter(error, attempts);
        const again = attempts <= limits.retries && mayHelp(id, error) && ms <= longestWait(limits, time);
        if (!again) throw amended(error, { outcome });
        await wait(id, ms, limits).catch((stopped: unknown) => {
          throw amended(stopped, { outcome });
        });
      }
    }
  };

  return {
    call,
    body: async (id, request, own = {}) => (await call(id, request, limitsOf(own, options))).body,
    limitsOfPolling: (own) => ({
      ...limitsOf(own, options),
      deadlineAt: time.now() + (own.deadlineMs ?? options.deadlineMs ?? DEADLINE_MS),
    }),
    wait,
  };
};

const limitsOf = (own: CallOptions, options: ClientOptions): Limits => ({
  timeoutMs: own.timeoutMs ?? options.timeoutMs ?? TIMEOUT_MS,
  retries: own.retries ?? options.retries ?? RETRIES,
  signal: own.signal,
  deadlineAt: null,
});

const createWait =
  (time: Time): Caller['wait'] =>
  async (id, ms, { deadlineAt, signal }) => {
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

/** Milliseconds until the next attempt: as long as the service asks, else growing with the attempts so far. */
const waitAfter = ({ retryAfterSeconds }: DoorplateError, attempts: number): number =>
  // A delay of zero counts as no delay given.
  retryAfterSeconds ? retryAfterSeconds * 1_000 : FIRST_WAIT_MS * 2 ** (attempts - 1);

const longestWait = ({ deadlineAt }: Limits, time: Time): number =>
  deadlineAt === null ? LONGEST_WAIT_MS : deadlineAt - time.now();

/** Whether another attempt is safe and may have another result. */
const mayHelp = (id: OperationId, { status }: DoorplateError): boolean => {
  // A 429 is sent before anything is done.
  if (status === 429) return true;
  return isRepeatable(id, endpoints[id][0]) && (status === null || status === 408 || status >= 500);
};

/** Adds up to a tenth, so that many callers do not return at once; never beyond the remaining time. */
const jittered = (ms: number, left: number): number =>
  ms + Math.random() * Math.min(ms / 10, (left - ms) / 2);
