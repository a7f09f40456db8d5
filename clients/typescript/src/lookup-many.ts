/** Lookups of many addresses: each once, at the pace that the service allows. */
import type { Caller } from './call.ts';
import { canonicalAddress } from './canonical-address.ts';
import { DoorplateError } from './errors.ts';
import { createLookupAttempt, type LookedUp, type LookupAttempt } from './lookup-attempt.ts';
import { LookupSchedule } from './lookup-schedule.ts';
import { RunningLookups } from './running-lookups.ts';
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
  const schedule = new LookupSchedule(time);
  const attempt = createLookupAttempt(caller, schedule, { attempts, signal });
  const run = new LookupRun(schedule, attempt, concurrency, signal);
  return {
    get progress() {
      return run.progress();
    },
    [Symbol.asyncIterator]: () => run.results(addresses, skip),
  };
};

/** Looks up what is scheduled, up to `concurrency` addresses at once. */
class LookupRun {
  readonly #schedule: LookupSchedule;
  readonly #attempt: LookupAttempt;
  readonly #concurrency: number;
  readonly #signal: AbortSignal | undefined;
  #done = 0;

  constructor(
    schedule: LookupSchedule,
    attempt: LookupAttempt,
    concurrency: number,
    signal: AbortSignal | undefined,
  ) {
    this.#schedule = schedule;
    this.#attempt = attempt;
    this.#concurrency = concurrency;
    this.#signal = signal;
  }

  progress(): LookupProgress {
    const schedule = this.#schedule;
    return {
      total: schedule.total(),
      done: this.#done,
      pending: schedule.pending(),
      waiting: schedule.waiting(),
    };
  }

  async *results(
    addresses: Iterable<string> | AsyncIterable<string>,
    skip: Iterable<string>,
  ): AsyncGenerator<LookedUp> {
    const running = new RunningLookups();
    let reading: Promise<void> | null = addDistinct(this.#schedule, addresses, skip)
      .catch((cause: unknown) => running.fail(cause))
      .finally(() => {
        reading = null;
      });
    // A list is known as a whole before the first request; what comes by and by is looked up as it comes.
    if (Symbol.iterator in addresses) await reading;
    try {
      for (;;) {
        this.#startDue(running);
        for (let one = running.take(); one; one = running.take()) {
          this.#done += 1;
          yield one;
        }
        running.throwIfFailed();
        if (reading === null && running.size === 0 && this.#schedule.isEmpty()) return;
        await this.#waitForWork(running, reading);
      }
    } finally {
      await Promise.all(running.all);
    }
  }

  #startDue(running: RunningLookups): void {
    while (running.size < this.#concurrency) {
      const task = this.#schedule.take();
      if (task === null) return;
      running.add(this.#attempt(task));
    }
  }

  /** Waits until an attempt has ended, one may begin, or all addresses are read. */
  #waitForWork(running: RunningLookups, reading: Promise<void> | null): Promise<void> {
    const ends = reading === null ? running.all : new Set([...running.all, reading]);
    return running.size < this.#concurrency
      ? this.#schedule.wait(ends, this.#signal).catch(asAborted)
      : Promise.race(running.all);
  }
}

/** Schedules each address once, however it is spelled. */
const addDistinct = async (
  schedule: LookupSchedule,
  addresses: Iterable<string> | AsyncIterable<string>,
  skip: Iterable<string>,
): Promise<void> => {
  const known = new Set([...skip].map(canonicalAddress));
  for await (const ip of addresses) {
    const canonical = canonicalAddress(ip);
    if (known.has(canonical)) continue;
    known.add(canonical);
    schedule.add(canonical);
  }
};

const asAborted = (reason: unknown): never => {
  if (reason instanceof DoorplateError) throw reason;
  const failure = { kind: 'aborted', outcome: 'unknown', operation: 'requestLookup' } as const;
  throw new DoorplateError('POST /v1/lookup: aborted; what was accepted goes on', failure, reason);
};
