/** One request for one of many addresses, and what follows from its response. */
import type { Answer } from './attempt.ts';
import type { Caller } from './call.ts';
import { DoorplateError } from './errors.ts';
import type { Lookup, Pending } from './generated.ts';
import type { LookupSchedule, Task } from './lookup-schedule.ts';
import type { Limits } from './options.ts';

/** The result of one address. An error is never "no company". */
export type LookedUp =
  | { readonly ip: string; readonly result: Lookup; readonly error: null }
  | { readonly ip: string; readonly result: null; readonly error: DoorplateError };

/** @returns the result; null: the address has been scheduled again */
export type LookupAttempt = (task: Task) => Promise<LookedUp | null>;

const POLL_SECONDS = 15;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 60_000;
/** Limits of new work: saved results and polls go on. */
const LIMITS_OF_NEW_WORK = new Set(['pending_limit', 'enrichment_limit', 'enrichment_capacity']);

export const createLookupAttempt = (
  caller: Caller,
  schedule: LookupSchedule,
  { attempts, signal }: { readonly attempts: number; readonly signal: AbortSignal | undefined },
): LookupAttempt => {
  const limits = { ...caller.limitsOfPolling({ retries: 0, signal }), deadlineAt: null };
  let allowance: Promise<number | null> | null = null;
  /** A key may look up saved addresses alone: then no wait helps. */
  const takesNone = async (): Promise<boolean> => {
    allowance ??= caller
      .call('readUsage', {}, limits)
      .then(({ body }) => body.limits.new_enrichments_per_day)
      .catch(() => {
        // Asked again at the next refusal.
        allowance = null;
        return null;
      });
    return (await allowance) === 0;
  };
  return async (task) => {
    try {
      const { body, retryAfterSeconds } = await ask(caller, task, limits);
      if (body.status === 'complete') return { ip: task.ip, result: body, error: null };
      schedule.later({ ip: task.ip, asks: 'poll', failures: 0 }, (retryAfterSeconds || POLL_SECONDS) * 1_000);
      return null;
    } catch (error) {
      if (!(error instanceof DoorplateError) || error.kind === 'aborted') throw error;
      const isOver =
        (error.code === 'enrichment_limit' && (await takesNone())) ||
        !tryAgain(schedule, task, error, attempts);
      return !isOver ? null : { ip: task.ip, result: null, error };
    }
  };
};

const ask = (caller: Caller, { ip, asks }: Task, limits: Limits): Promise<Answer<Lookup | Pending>> =>
  asks === 'submit'
    ? caller.call('requestLookup', { body: { ip } }, limits)
    : caller.call('readLookup', { query: { ip } }, limits);

/** Schedules a failed task again. @returns false: its error is the result */
const tryAgain = (
  schedule: LookupSchedule,
  task: Task,
  { status, code, retryAfterSeconds, outcome }: DoorplateError,
  attempts: number,
): boolean => {
  if (status === 429) {
    pause(schedule, code ?? '', (retryAfterSeconds || 1) * 1_000);
    schedule.again(task);
    return true;
  }
  if (code === 'not_requested') {
    schedule.again({ ...task, asks: 'submit' });
    return true;
  }
  const failures = task.failures + 1;
  if (outcome === 'refused' || failures >= attempts) return false;
  const backoff = Math.min(FIRST_RETRY_MS * 2 ** task.failures, LONGEST_RETRY_MS);
  schedule.later({ ...task, failures }, retryAfterSeconds ? retryAfterSeconds * 1_000 : backoff);
  return true;
};

const pause = (schedule: LookupSchedule, code: string, ms: number): void => {
  if (LIMITS_OF_NEW_WORK.has(code)) schedule.pauseSubmissions(code, ms);
  else schedule.pauseAll(ms);
};
