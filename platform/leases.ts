import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import type { Clock } from './clock.ts';
import { createHeart, type Heartbeat, type LeaseRow } from './heartbeat.ts';
import { createLiveness } from './liveness.ts';
import { createWakeup } from './wakeup.ts';

/** The right to run a group; its number is the fencing token that writes under it name. */
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
  /** Whether no other process runs. Holds for limits that all processes share. */
  alone(): boolean;
  /** Whether any other process is there, commands included. */
  hasOthers(): boolean;
  /** Who leads what, as of the last heartbeat; null while no heartbeat gets through. */
  states(): readonly LeaseState[] | null;
  /** Runs something in one process of all. `run` ends soon after its signal aborts; it guards its writes by the lease. */
  lead(name: string, run: (lease: Lease, signal: AbortSignal) => Promise<void>): void;
  /** Ends what runs, gives the leases back and leaves. */
  stop(): Promise<void>;
}

export interface LeasesOptions {
  readonly url: string;
  /** `command`: beside a server it leads nothing. */
  readonly role: 'all' | 'api' | 'workers' | 'command';
  readonly clock: Clock;
  readonly log: Logger;
}

const BEAT_MS = 1_250;
/** How soon a process looks again at one whose session is missing. */
const DOUBT_MS = 250;
/** A holder counts on its leases for so long after a heartbeat: less than others wait before they take over. */
const VALID_MS = 2_600;
/** A process that has its share leaves a free lease to the others for so many heartbeats. */
const COURTESY_BEATS = 2;
/** A group that failed starts again after this. */
const AGAIN_MS = 1_000;
/** How long a stop waits for the groups to end. */
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
  /** It is given up, and the database may not know yet. */
  isLeaving: boolean;
  /** Heartbeats in a row in which nobody held it. */
  freeBeats: number;
}

/**
 * Enters this process among those alive, and leads the groups that fall to it. One heartbeat renews all of its leases; the
 * others watch it on their own monotonic clock, so that no two clocks are compared. A process that has ended is replaced
 * within three seconds, a frozen one within six. Two may overlap for a moment: the lease's number decides whose writes
 * count (docs/adr/0015). Resolves once the other processes have seen this one.
 */
export const enterLeases = async ({ url, role, clock, log }: LeasesOptions): Promise<Leases> => {
  const processId = uuid();
  const groups: Group[] = [];
  const liveness = createLiveness();
  const wakeup = createWakeup();
  const stopping = new AbortController();
  const heart = createHeart({ url, processId, role, clock, onReleased: wakeup.wake, onLost: wakeup.wake });
  let last: Heartbeat = { processes: [], leases: [] };
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
          log.warn({ group: group.name, error: String(error) }, 'group failed; it starts again');
      }
      await createWakeup().wait(AGAIN_MS, signal);
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
        log.warn({ group: group.name }, 'lease lost; the group ends here');
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

  /** Gives a group to a process that has less than its share, and all of them to a server that runs beside a command. */
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

  const beat = async (): Promise<void> => {
    beganAt = performance.now();
    const gone = last.processes.map(({ process_id }) => process_id).filter(liveness.isGone);
    last = await heart.beat(gone);
    validUntil = beganAt + VALID_MS;
    liveness.observe(last.processes, performance.now());
    if (stopping.signal.aborted) return;
    for (const group of groups) await settle(group);
    shareOut();
  };

  /** Without heartbeats for a while, another process may lead by now. */
  const expire = setInterval(() => {
    if (performance.now() < validUntil) return;
    for (const { running } of groups) running?.ending.abort();
  }, BEAT_MS / 5);
  expire.unref();

  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      // Counted from the last one's start: a database that answers slowly must not cost the leases.
      const restMs = Math.max(0, beganAt + BEAT_MS - performance.now());
      await wakeup.wait(liveness.hasDoubt() ? DOUBT_MS : restMs, stopping.signal);
      if (stopping.signal.aborted) return;
      await beat().catch((error: unknown) =>
        log.debug({ error: String(error) }, 'heartbeat failed; it is repeated'),
      );
    }
  };

  await beat();
  // Until the others have seen this process, each might believe that it has a shared limit for itself.
  if (role !== 'command' && others().length > 0) await createWakeup().wait(BEAT_MS + 200);
  const looping = loop();

  return {
    processId,
    alone: () => others().every((one) => one.role === 'command'),
    hasOthers: () => others().length > 0,
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
      // At once: a heartbeat that hangs must not take the groups' time to end.
      for (const { running } of groups) running?.ending.abort();
      await looping;
      clearInterval(expire);
      for (const { running } of groups) running?.ending.abort();
      const ended = new AbortController();
      const all = Promise.all(groups.map(({ running }) => running?.done)).then(() => ended.abort());
      await Promise.race([all, createWakeup().wait(STOP_MS, ended.signal)]);
      await heart.leave();
    },
  };
};
