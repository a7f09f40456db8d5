import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import type { Clock } from './clock.ts';
import { createHeart, type Heartbeat, type LeaseRow } from './heartbeat.ts';
import { createLiveness } from './liveness.ts';
import { endsWithin } from './pause.ts';
import { createWakeup } from './wakeup.ts';

/** The right to run a group. `number` is the fencing token that guards its writes. */
export interface Lease {
  readonly name: string;
  readonly number: string;
  readonly processId: string;
}

export interface LeaseState {
  readonly name: string;
  /** null: no live process holds it. */
  readonly processId: string | null;
}

export interface Leases {
  readonly processId: string;
  /** Returns whether no other server process runs, so that shared limits may be kept in memory. */
  alone(): boolean;
  /** Returns whether any other process runs, including commands. */
  hasOthers(): boolean;
  /** Tells the other processes which providers of company data this one asks. */
  announce(providers: readonly string[]): void;
  /**
   * Returns the providers that every process with workers asks; none while one of them is not known to ask any. The same
   * array while they do not change.
   */
  providers(): readonly string[];
  /** Returns the lease holders as of the last heartbeat; null while heartbeats fail. */
  states(): readonly LeaseState[] | null;
  /** Runs a group in one process at a time. `run` must end soon after its signal aborts, and guard its writes by the lease. */
  lead(name: string, run: (lease: Lease, signal: AbortSignal) => Promise<void>): void;
  /** Ends running groups, releases their leases and removes this process. */
  stop(): Promise<void>;
}

export interface LeasesOptions {
  readonly url: string;
  /** A `command` leads nothing while a server runs. */
  readonly role: 'all' | 'api' | 'workers' | 'command';
  readonly clock: Clock;
  readonly log: Logger;
}

const BEAT_MS = 1_250;
/** Poll interval while the session of another process is missing. */
const DOUBT_MS = 250;
/** A holder relies on its leases this long after a heartbeat: less than others wait before they take over. */
const VALID_MS = 2_600;
/** For this many heartbeats, a process that has its share leaves a free lease to others. */
const COURTESY_BEATS = 2;
const RESTART_MS = 1_000;
/** Time that groups get to end at stop. */
const STOP_MS = 6_000;

interface Run {
  readonly number: string;
  readonly ending: AbortController;
  readonly done: Promise<void>;
}

interface Group {
  readonly name: string;
  readonly run: (lease: Lease, signal: AbortSignal) => Promise<void>;
  running: Run | null;
  /** The group is being released, and the database may not show it yet. */
  isLeaving: boolean;
  /** Heartbeats in a row in which no process held it. */
  freeBeats: number;
}

/**
 * Registers this process and leads its share of the groups. One heartbeat renews all of its leases. Other processes watch it
 * on their own monotonic clocks, so no two clocks are compared. A dead process is replaced within three seconds, a frozen
 * one within six. Two leaders may overlap briefly; the lease's fencing token decides whose writes count (docs/adr/0015).
 * Resolves after the other processes have seen this one.
 */
export const enterLeases = async ({ url, role, clock, log }: LeasesOptions): Promise<Leases> => {
  const processId = uuid();
  const groups: Group[] = [];
  const liveness = createLiveness();
  const wakeup = createWakeup();
  const stopping = new AbortController();
  const heart = createHeart({ url, processId, role, clock, onReleased: wakeup.wake, onLost: wakeup.wake });
  let last: Heartbeat = { processes: [], leases: [] };
  let asked: readonly string[] | null = null;
  let common: readonly string[] = [];
  let validUntil = Number.NEGATIVE_INFINITY;
  let beganAt = Number.NEGATIVE_INFINITY;

  const others = () => last.processes.filter(({ process_id }) => !liveness.isGone(process_id));
  const otherWorkers = () => others().filter((one) => one.role === 'all' || one.role === 'workers');
  const rowOf = (name: string): LeaseRow | undefined => last.leases.find((row) => row.name === name);
  const heldBy = (id: string): number => last.leases.filter((row) => row.process_id === id).length;
  const liveHolder = (row: LeaseRow | undefined): string | null =>
    row?.process_id === processId || (row?.process_id != null && !liveness.isGone(row.process_id))
      ? row.process_id
      : null;

  const start = (group: Group, number: string): void => {
    const ending = new AbortController();
    const { signal } = ending;
    const work = async (): Promise<void> => {
      try {
        await group.run({ name: group.name, number, processId }, signal);
      } catch (error) {
        if (!signal.aborted)
          log.warn({ group: group.name, error: String(error) }, 'group failed; restart scheduled');
      }
      await createWakeup().wait(RESTART_MS, signal);
      group.running = null;
      wakeup.wake();
    };
    group.running = { number, ending, done: work() };
    log.debug({ group: group.name, lease: number }, 'leading');
  };

  const release = (group: Group): void => {
    group.freeBeats = -COURTESY_BEATS;
    group.isLeaving = true;
    group.running?.ending.abort();
    void group.running?.done
      .then(() => heart.release(group.name))
      .catch(() => undefined)
      .finally(() => {
        group.isLeaving = false;
      });
  };

  const mayTake = (group: Group): boolean => {
    if (role === 'command') return otherWorkers().length === 0;
    const share = Math.ceil(groups.length / (otherWorkers().length + 1));
    return heldBy(processId) < share || group.freeBeats > COURTESY_BEATS;
  };

  const settle = async (group: Group): Promise<void> => {
    const { running } = group;
    const row = rowOf(group.name);
    const isMine = row?.process_id === processId;
    if (running !== null) {
      if (!isMine && !running.ending.signal.aborted)
        log.warn({ group: group.name }, 'lease lost; the group stops in this process');
      if (!isMine || running.number !== row.number) running.ending.abort();
      return;
    }
    if (group.isLeaving || stopping.signal.aborted) return;
    if (isMine) return start(group, row.number);
    if (liveHolder(row) !== null) return;
    group.freeBeats += 1;
    if (!mayTake(group)) return;
    const number = await heart.take(group.name, row ?? null);
    if (number === null) return;
    const taken = { name: group.name, number, process_id: processId };
    last = { ...last, leases: [...last.leases.filter(({ name }) => name !== group.name), taken] };
    group.freeBeats = 0;
    start(group, number);
  };

  /** Releases a group to a process below its share; a command releases all of its groups to a server. */
  const shareOut = (): void => {
    const held = groups.filter(({ running }) => running !== null && !running.ending.signal.aborted);
    const workers = otherWorkers();
    if (role === 'command') {
      if (workers.length > 0) for (const group of held) release(group);
      return;
    }
    const least = Math.floor(groups.length / (workers.length + 1));
    const isShort = workers.some((one) => Number(one.beats) > 1 && heldBy(one.process_id) < least);
    const spare = held.at(-1);
    if (spare && isShort && held.length > Math.ceil(groups.length / (workers.length + 1))) release(spare);
  };

  /** Finds the providers that all workers ask. */
  const agree = (): void => {
    const lists = otherWorkers().map((one) => one.providers ?? []);
    const [first = [], ...rest] = asked === null ? lists : [asked, ...lists];
    const now = first.filter((name) => rest.every((list) => list.includes(name)));
    if (now.join() !== common.join()) common = now;
  };

  const beat = async (): Promise<void> => {
    beganAt = performance.now();
    const gone = last.processes.map(({ process_id }) => process_id).filter(liveness.isGone);
    last = await heart.beat(gone, asked);
    validUntil = beganAt + VALID_MS;
    liveness.observe(last.processes, performance.now());
    agree();
    if (stopping.signal.aborted) return;
    for (const group of groups) await settle(group);
    shareOut();
  };

  /** Ends groups after too long without heartbeats, because another process may lead by then. */
  const expire = setInterval(() => {
    if (performance.now() < validUntil) return;
    for (const { running } of groups) running?.ending.abort();
  }, BEAT_MS / 5);
  expire.unref();

  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      // Counted from the start of the last heartbeat, so that a slow database does not cost the leases.
      const restMs = Math.max(0, beganAt + BEAT_MS - performance.now());
      await wakeup.wait(liveness.hasDoubt() ? DOUBT_MS : restMs, stopping.signal);
      if (stopping.signal.aborted) return;
      await beat().catch((error: unknown) =>
        log.debug({ error: String(error) }, 'heartbeat failed; retry scheduled'),
      );
    }
  };

  await beat();
  // Until the other processes have seen this one, each might use a shared limit alone.
  if (role !== 'command' && others().length > 0) await createWakeup().wait(BEAT_MS + 200);
  const looping = loop();

  return {
    processId,
    alone: () => others().every((one) => one.role === 'command'),
    hasOthers: () => others().length > 0,
    announce: (providers) => {
      asked = providers;
      agree();
      wakeup.wake();
    },
    providers: () => common,
    states: () =>
      performance.now() > validUntil
        ? null
        : last.leases.map((row) => ({ name: row.name, processId: liveHolder(row) })),
    lead: (name, run) => {
      groups.push({ name, run, running: null, isLeaving: false, freeBeats: 0 });
      wakeup.wake();
    },
    stop: async () => {
      stopping.abort();
      // At once, so that a hanging heartbeat does not use up the groups' time to end.
      for (const { running } of groups) running?.ending.abort();
      await looping;
      clearInterval(expire);
      for (const { running } of groups) running?.ending.abort();
      await endsWithin(Promise.all(groups.map(({ running }) => running?.done)), STOP_MS);
      await heart.leave();
    },
  };
};
