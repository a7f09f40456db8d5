import type { Logger } from 'pino';
import { endsWithin, pause } from './pause.ts';

/** The right to run a group. `number` is the fencing token that guards its writes. */
export interface Lease {
  readonly name: string;
  readonly number: string;
  readonly processId: string;
}

/** Runs a group until its signal aborts, and guards its writes by the lease. */
export type RunGroup = (lease: Lease, signal: AbortSignal) => Promise<void>;

interface Run {
  readonly number: string;
  readonly ending: AbortController;
  readonly done: Promise<void>;
}

export interface LeaseGroupOptions {
  readonly name: string;
  readonly run: RunGroup;
  readonly processId: string;
  readonly log: Logger;
  /** Called when a run has ended, so that the group can be started again. */
  readonly onEnd: () => void;
}

/** For this many heartbeats, a process that has its share leaves a free lease to others. */
export const COURTESY_BEATS = 2;
const RESTART_MS = 1_000;
const MAY_END_MS = 30_000;

/** A group, and its run in this process while it holds the lease. */
export class LeaseGroup {
  readonly name: string;
  /** Heartbeats in a row in which no process held it. */
  freeBeats = 0;
  readonly #options: LeaseGroupOptions;
  #running: Run | null = null;
  #isReleasing = false;

  constructor(options: LeaseGroupOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Returns whether it runs here, also while the run is ending. */
  isRunning(): boolean {
    return this.#running !== null;
  }

  /** Returns whether it runs here and is not ending. */
  isHeld(): boolean {
    return this.#running !== null && !this.#running.ending.signal.aborted;
  }

  /** Returns whether it is being released, which the database may not show yet. */
  isReleasing(): boolean {
    return this.#isReleasing;
  }

  /** Starts a run under this process's lease of that number. */
  start(number: string): void {
    const ending = new AbortController();
    this.#running = { number, ending, done: this.#work(number, ending.signal) };
    this.#options.log.debug({ group: this.name, lease: number }, 'leading');
  }

  async #work(number: string, signal: AbortSignal): Promise<void> {
    const { name, run, processId, log, onEnd } = this.#options;
    try {
      await run({ name, number, processId }, signal);
    } catch (error) {
      if (!signal.aborted) log.warn({ group: name, error: String(error) }, 'group failed; restart scheduled');
    }
    await pause(RESTART_MS, signal);
    this.#running = null;
    onEnd();
  }

  /** Ends the run unless the lease is still the one that it began with. `number`: of this process's lease; null: it has none. */
  endUnless(number: string | null): void {
    if (number === null && this.isHeld())
      this.#options.log.warn({ group: this.name }, 'lease lost; the group stops in this process');
    if (this.#running?.number !== number) this.end();
  }

  end(): void {
    const run = this.#running;
    if (run === null || run.ending.signal.aborted) return;
    run.ending.abort();
    void this.#reportUntilEnded(run.done);
  }

  /** While this process holds the lease, no other one runs the group: only a restart does. */
  async #reportUntilEnded(done: Promise<void>): Promise<void> {
    while (!(await endsWithin(done, MAY_END_MS))) {
      this.#options.log.error({ group: this.name }, 'group does not end; restart the process');
    }
  }

  /** Resolves when no run is left in this process. */
  async ended(): Promise<void> {
    await this.#running?.done;
  }

  /** Ends the run, then gives the lease back by `giveBack`, whose failure leaves it to expire. */
  release(giveBack: (name: string) => Promise<void>): void {
    this.#isReleasing = true;
    this.freeBeats = -COURTESY_BEATS;
    this.end();
    void this.ended()
      .then(() => giveBack(this.name))
      .catch(() => undefined)
      .finally(() => {
        this.#isReleasing = false;
      });
  }
}
