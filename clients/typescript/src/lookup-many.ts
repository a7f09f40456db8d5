/** Lookups of many addresses: each once, at the pace that the service allows. */
import type { Caller } from './call.ts';
import { canonicalAddress } from './canonical-address.ts';
import { DoorplateError } from './errors.ts';
import type { Lookup } from './generated.ts';
import { createSchedule, type Task } from './lookup-schedule.ts';
import type { Time } from './time.ts';

export interface LookupManyOptions {
  /** Requests under way at once; 8 by default. */
  readonly concurrency?: number | undefined;
  /** Ends the iteration with an error of the kind `aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** Attempts of one request whose outcome is unknown, before its error is the result; 8 by default. */
  readonly attempts?: number | undefined;
  /** Addresses that an earlier run has finished. */
  readonly skip?: Iterable<string> | undefined;
}

/** The result of one address. An error is never "no company". */
export type LookedUp =
  | { readonly ip: string; readonly result: Lookup; readonly error: null }
  | { readonly ip: string; readonly result: null; readonly error: DoorplateError };

export interface LookupProgress {
  /** Distinct addresses, those of `skip` not included. */
  readonly total: number;
  readonly done: number;
  /** Accepted by the service and not finished. */
  readonly pending: number;
  /** Why no new address is submitted at the moment, and for how long still; null: they are. */
  readonly waiting: { readonly code: string; readonly ms: number } | null;
}

/** Results in the order in which they come. */
export interface LookupMany extends AsyncIterable<LookedUp> {
  readonly progress: LookupProgress;
}

const CONCURRENCY = 8;
const ATTEMPTS = 8;
const POLL_SECONDS = 15;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 60_000;
/** Limits of new work: saved results and polls go on. */
const LIMITS_OF_NEW_WORK = new Set(['pending_limit', 'enrichment_limit', 'enrichment_capacity']);

/** @throws TypeError for a concurrency or number of attempts below 1 */
export const lookUpMany = (
  caller: Caller,
  time: Time,
  addresses: Iterable<string> | AsyncIterable<string>,
  options: LookupManyOptions,
): LookupMany => {
  const { concurrency = CONCURRENCY, attempts = ATTEMPTS, signal, skip = [] } = options;
  if (!(concurrency >= 1) || !(attempts >= 1))
    throw new TypeError('concurrency and attempts must be 1 or more');
  const schedule = createSchedule(time);
  const limits = { ...caller.limitsOfPolling({ retries: 0, signal }), deadlineAt: null };
  let done = 0;

  const ask = ({ ip, asks }: Task) =>
    asks === 'submit'
      ? caller.call('requestLookup', { body: { ip } }, limits)
      : caller.call('readLookup', { query: { ip } }, limits);

  /** @returns the result; null: the address has been scheduled again */
  const attempt = async (task: Task): Promise<LookedUp | null> => {
    try {
      const { body, retryAfterSeconds } = await ask(task);
      if (body.status === 'complete') return { ip: task.ip, result: body, error: null };
      schedule.later({ ip: task.ip, asks: 'poll', failures: 0 }, (retryAfterSeconds || POLL_SECONDS) * 1_000);
      return null;
    } catch (error) {
      if (!(error instanceof DoorplateError) || error.kind === 'aborted') throw error;
      return tryAgain(task, error) ? null : { ip: task.ip, result: null, error };
    }
  };

  const tryAgain = (task: Task, { status, code, retryAfterSeconds, outcome }: DoorplateError): boolean => {
    if (status === 429) {
      const ms = (retryAfterSeconds || 1) * 1_000;
      if (LIMITS_OF_NEW_WORK.has(code ?? '')) schedule.pauseSubmissions(code ?? '', ms);
      else schedule.pauseAll(ms);
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

  async function* results(): AsyncGenerator<LookedUp> {
    const known = new Set([...skip].map(canonicalAddress));
    for await (const ip of addresses) {
      const canonical = canonicalAddress(ip);
      if (known.has(canonical)) continue;
      known.add(canonical);
      schedule.add(canonical);
    }
    const finished: LookedUp[] = [];
    const running = new Set<Promise<void>>();
    /** What ends the iteration; it may happen while a result is being handled. */
    const failures: unknown[] = [];
    const start = (task: Task): void => {
      const work = attempt(task)
        .then(
          (result) => {
            if (result) finished.push(result);
          },
          (cause: unknown) => {
            failures.push(cause);
          },
        )
        .finally(() => running.delete(work));
      running.add(work);
    };
    try {
      for (;;) {
        while (running.size < concurrency) {
          const task = schedule.take();
          if (task === null) break;
          start(task);
        }
        for (let one = finished.shift(); one; one = finished.shift()) {
          done += 1;
          yield one;
        }
        if (failures.length > 0) throw failures[0];
        if (running.size === 0 && schedule.isEmpty()) return;
        if (running.size < concurrency) await schedule.wait(running, signal).catch(asAborted);
        else await Promise.race(running);
      }
    } finally {
      await Promise.all(running);
    }
  }

  return {
    get progress() {
      return { total: schedule.total(), done, pending: schedule.pending(), waiting: schedule.waiting() };
    },
    [Symbol.asyncIterator]: results,
  };
};

const asAborted = (reason: unknown): never => {
  if (reason instanceof DoorplateError) throw reason;
  const failure = { kind: 'aborted', outcome: 'unknown', operation: 'requestLookup' } as const;
  throw new DoorplateError('POST /v1/lookup: aborted; what was accepted goes on', failure, reason);
};
