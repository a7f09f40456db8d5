import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import type { Clock } from '../clock/clock.ts';
import { createWakeup, endsWithin, pause } from '../clock/waiting.ts';
import { LeaseStore } from './lease-store.ts';
import { ProcessRegistry, type ProcessRole } from './process-registry.ts';

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
const COURTESY_BEATS = 2;
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

/** Returns whether this process may take a free lease: up to its share, or one that no other process takes. */
function mayTake(group: LeaseGroup, groups: number, processes: ProcessRegistry, role: ProcessRole): boolean {
  const workers = processes.otherWorkers().length;
  if (role === 'command') return workers === 0;
  return (
    processes.heldBy(processes.processId) < Math.ceil(groups / (workers + 1)) ||
    group.freeBeats > COURTESY_BEATS
  );
}

/** Returns the groups to release: one to a process below its share; a command releases all of its groups to a server. */
function sparedGroups(
  groups: readonly LeaseGroup[],
  processes: ProcessRegistry,
  role: ProcessRole,
): readonly LeaseGroup[] {
  const held = groups.filter((group) => group.isHeld());
  const workers = processes.otherWorkers();
  if (role === 'command') return workers.length > 0 ? held : [];
  const share = groups.length / (workers.length + 1);
  const isShort = workers.some(
    ({ beats, process_id }) => Number(beats) > 1 && processes.heldBy(process_id) < Math.floor(share),
  );
  return isShort && held.length > Math.ceil(share) ? held.slice(-1) : [];
}

export interface LeaseState {
  readonly name: string;
  /** null: no live process holds it. */
  readonly processId: string | null;
}

export interface LeasesOptions {
  readonly url: string;
  /** A `command` leads nothing while a server runs. */
  readonly role: ProcessRole;
  readonly clock: Clock;
  readonly log: Logger;
}

const BEAT_MS = 1_250;
/** Poll interval while the session of another process is missing. */
const DOUBT_MS = 250;
/** A holder relies on its leases this long after a heartbeat: less than others wait before they take over. */
const VALID_MS = 2_600;
/** Time that groups get to end at stop. */
const STOP_MS = 6_000;

/**
 * Registers this process and leads its share of the groups. One heartbeat renews all of its leases. Other processes watch it
 * on their own monotonic clocks, so no two clocks are compared. A dead process is replaced within three seconds, a frozen
 * one within six. Two leaders may overlap briefly; the lease's fencing token decides whose writes count (docs/adr/0015).
 * Resolves after the other processes have seen this one.
 */
export async function enterLeases(options: LeasesOptions): Promise<Leases> {
  const leases = new Leases(options);
  await leases.enter();
  return leases;
}

/** The functions that callers pass on are fields, bound to their object. */
export class Leases {
  readonly processId = uuid();
  readonly #role: ProcessRole;
  readonly #log: Logger;
  readonly #store: LeaseStore;
  readonly #groups: LeaseGroup[] = [];
  readonly #processes = new ProcessRegistry(this.processId);
  readonly #wakeup = createWakeup();
  readonly #stopping = new AbortController();
  /** Ends groups after too long without heartbeats, because another process may lead by then. */
  #expiry: NodeJS.Timeout | undefined;
  #beating: Promise<void> = Promise.resolve();
  #validUntil = Number.NEGATIVE_INFINITY;
  #beganAt = Number.NEGATIVE_INFINITY;

  constructor({ url, role, clock, log }: LeasesOptions) {
    this.#role = role;
    this.#log = log;
    this.#store = new LeaseStore({
      url,
      processId: this.processId,
      role,
      clock,
      onChange: this.#wakeup.wake,
    });
  }

  async enter(): Promise<void> {
    await this.#heartbeat();
    // Until the other processes have seen this one, each might use a shared limit alone.
    if (this.#role !== 'command' && this.hasOthers()) await pause(BEAT_MS + 200);
    this.#beating = this.#keepBeating();
  }

  /** Returns whether no other server process runs, so that shared limits may be kept in memory. */
  readonly alone = (): boolean => this.#processes.others().every((one) => one.role === 'command');

  /** Returns whether any other process runs, including commands. */
  readonly hasOthers = (): boolean => this.#processes.others().length > 0;

  /** Tells the other processes which providers of company data this one asks. */
  announce(providers: readonly string[]): void {
    this.#processes.announce(providers);
    this.#wakeup.wake();
  }

  /**
   * Returns the providers that every process with workers asks; none while one of them is not known to ask any. The same
   * array while they do not change.
   */
  readonly providers = (): readonly string[] => this.#processes.commonProviders;

  /** Returns the lease holders as of the last heartbeat; null while heartbeats fail. */
  states(): readonly LeaseState[] | null {
    if (performance.now() > this.#validUntil) return null;
    return this.#processes
      .leases()
      .map((row) => ({ name: row.name, processId: this.#processes.liveHolder(row) }));
  }

  /** Runs a group in one process at a time. `run` must end soon after its signal aborts, and guard its writes by the lease. */
  lead(name: string, run: RunGroup): void {
    const { processId } = this;
    this.#groups.push(new LeaseGroup({ name, run, processId, log: this.#log, onEnd: this.#wakeup.wake }));
    this.#wakeup.wake();
  }

  /** Ends running groups, releases their leases and removes this process. */
  readonly stop = async (): Promise<void> => {
    this.#stopping.abort();
    // At once, so that a hanging heartbeat does not use up the groups' time to end.
    this.#endAll();
    await this.#beating;
    clearTimeout(this.#expiry);
    this.#endAll();
    await endsWithin(Promise.all(this.#groups.map((group) => group.ended())), STOP_MS);
    await this.#store.leave();
  };

  async #keepBeating(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      // Counted from the start of the last heartbeat, so that a slow database does not cost the leases.
      const restMs = Math.max(0, this.#beganAt + BEAT_MS - performance.now());
      await this.#wakeup.wait(this.#processes.hasDoubt() ? DOUBT_MS : restMs, signal);
      if (signal.aborted) return;
      await this.#heartbeat().catch((error: unknown) =>
        this.#log.debug({ error: String(error) }, 'heartbeat failed; retry scheduled'),
      );
    }
  }

  async #heartbeat(): Promise<void> {
    this.#beganAt = performance.now();
    this.#processes.observe(
      await this.#store.heartbeat(this.#processes.gone(), this.#processes.ownProviders),
    );
    this.#validUntil = this.#beganAt + VALID_MS;
    clearTimeout(this.#expiry);
    const validMs = Math.max(0, this.#validUntil - performance.now());
    this.#expiry = setTimeout(() => this.#endAll(), validMs).unref();
    if (this.#stopping.signal.aborted) return;
    for (const group of this.#groups) await this.#settle(group);
    for (const group of sparedGroups(this.#groups, this.#processes, this.#role)) {
      group.release((name) => this.#store.release(name));
    }
  }

  #endAll(): void {
    for (const group of this.#groups) group.end();
  }

  async #settle(group: LeaseGroup): Promise<void> {
    const row = this.#processes.leaseOf(group.name);
    const own = row?.process_id === this.processId ? row.number : null;
    if (group.isRunning()) return group.endUnless(own);
    if (group.isReleasing() || this.#stopping.signal.aborted) return;
    if (own !== null) return group.start(own);
    if (this.#processes.liveHolder(row) !== null) return;
    group.freeBeats += 1;
    if (!mayTake(group, this.#groups.length, this.#processes, this.#role)) return;
    const number = await this.#store.take(group.name, row ?? null);
    if (number === null) return;
    this.#processes.addOwnLease(group.name, number);
    group.freeBeats = 0;
    group.start(number);
  }
}
