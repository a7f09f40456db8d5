import type { Heartbeat, LeaseRow, ProcessRow } from './lease-store.ts';

type Seen = Pick<ProcessRow, 'process_id' | 'beats' | 'connected'>;

interface Watched {
  readonly beats: string;
  /** When this count was first observed, milliseconds. */
  readonly sinceMs: number;
  readonly sightings: number;
  readonly unconnected: number;
}

/** A process is frozen or cut off if its count stays unchanged this long, over at least this many observations. */
const UNCHANGED_MS = 3_000;
const SIGHTINGS = 3;
/** A process without a session has exited; two observations, because it may just be reconnecting. */
const UNCONNECTED = 2;

/** Decides which processes are alive, by heartbeats that this process sees change on its own monotonic clock. */
export function createLiveness() {
  let watched = new Map<string, Watched>();
  let lastMs = 0;
  const isUnchanged = ({ sinceMs, sightings }: Watched): boolean =>
    sightings >= SIGHTINGS && lastMs - sinceMs >= UNCHANGED_MS;
  return {
    /** Records the rows of one heartbeat. `nowMs`: monotonic. */
    observe: (others: readonly Seen[], nowMs: number): void => {
      lastMs = nowMs;
      watched = new Map(
        others.map(({ process_id, beats, connected }) => {
          const before = watched.get(process_id);
          const same = before?.beats === beats;
          return [
            process_id,
            {
              beats,
              sinceMs: same ? before.sinceMs : nowMs,
              sightings: same ? before.sightings + 1 : 1,
              unconnected: connected ? 0 : (before?.unconnected ?? 0) + 1,
            },
          ];
        }),
      );
    },
    /** Returns whether a process counts as gone; one without a row does. */
    isGone: (processId: string): boolean => {
      const seen = watched.get(processId);
      return seen === undefined || seen.unconnected >= UNCONNECTED || isUnchanged(seen);
    },
    /** Returns whether a process may be gone, so that the next heartbeat should come soon. */
    hasDoubt: (): boolean =>
      [...watched.values()].some(({ unconnected }) => unconnected > 0 && unconnected < UNCONNECTED),
  };
}

export type ProcessRole = 'all' | 'api' | 'workers' | 'command';

/** The other processes and the leases as of the last heartbeat of this process. */
export class ProcessRegistry {
  readonly processId: string;
  readonly #liveness = createLiveness();
  #last: Heartbeat = { processes: [], leases: [] };
  #ownProviders: readonly string[] | null = null;
  #commonProviders: readonly string[] = [];

  constructor(processId: string) {
    this.processId = processId;
  }

  observe(heartbeat: Heartbeat): void {
    this.#last = heartbeat;
    this.#liveness.observe(heartbeat.processes, performance.now());
    this.#agree();
  }

  announce(providers: readonly string[]): void {
    this.#ownProviders = providers;
    this.#agree();
  }

  /** What was announced; null: nothing yet. */
  get ownProviders(): readonly string[] | null {
    return this.#ownProviders;
  }

  /** The providers that every process with workers asks; the same array while they do not change. */
  get commonProviders(): readonly string[] {
    return this.#commonProviders;
  }

  #agree(): void {
    const lists = this.otherWorkers().map((one) => one.providers ?? []);
    const [first = [], ...rest] = this.#ownProviders === null ? lists : [this.#ownProviders, ...lists];
    const now = first.filter((name) => rest.every((list) => list.includes(name)));
    if (now.join() !== this.#commonProviders.join()) this.#commonProviders = now;
  }

  /** Records a lease that this process took since the heartbeat. */
  addOwnLease(name: string, number: string): void {
    const leases = this.#last.leases.filter((row) => row.name !== name);
    this.#last = { ...this.#last, leases: [...leases, { name, number, process_id: this.processId }] };
  }

  /** Returns the ids of the processes whose rows may be deleted. */
  gone(): readonly string[] {
    return this.#last.processes.map(({ process_id }) => process_id).filter(this.#liveness.isGone);
  }

  /** Returns whether a process may be gone, so that the next heartbeat should come soon. */
  hasDoubt(): boolean {
    return this.#liveness.hasDoubt();
  }

  others(): readonly ProcessRow[] {
    return this.#last.processes.filter(({ process_id }) => !this.#liveness.isGone(process_id));
  }

  otherWorkers(): readonly ProcessRow[] {
    return this.others().filter(({ role }) => role === 'all' || role === 'workers');
  }

  leases(): readonly LeaseRow[] {
    return this.#last.leases;
  }

  leaseOf(name: string): LeaseRow | undefined {
    return this.#last.leases.find((row) => row.name === name);
  }

  heldBy(processId: string): number {
    return this.#last.leases.filter((row) => row.process_id === processId).length;
  }

  /** Returns the process that holds a lease; null if none does or it is gone. */
  liveHolder(row: LeaseRow | undefined): string | null {
    const holder = row?.process_id ?? null;
    if (holder === null || holder === this.processId) return holder;
    return this.#liveness.isGone(holder) ? null : holder;
  }
}
