/** Decides which processes are alive, by heartbeats that this process sees change on its own monotonic clock. */
export interface Liveness {
  /** Records the rows of one heartbeat. `nowMs`: monotonic. */
  observe(others: readonly Seen[], nowMs: number): void;
  /** Returns whether a process counts as gone; one without a row does. */
  isGone(processId: string): boolean;
  /** Returns whether a process may be gone, so that the next heartbeat should come soon. */
  hasDoubt(): boolean;
}

export interface Seen {
  readonly process_id: string;
  readonly beats: string;
  readonly connected: boolean;
}

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

export const createLiveness = (): Liveness => {
  let watched = new Map<string, Watched>();
  let lastMs = 0;
  const isUnchanged = ({ sinceMs, sightings }: Watched): boolean =>
    sightings >= SIGHTINGS && lastMs - sinceMs >= UNCHANGED_MS;
  return {
    observe: (others, nowMs) => {
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
    isGone: (processId) => {
      const seen = watched.get(processId);
      return seen === undefined || seen.unconnected >= UNCONNECTED || isUnchanged(seen);
    },
    hasDoubt: () =>
      [...watched.values()].some(({ unconnected }) => unconnected > 0 && unconnected < UNCONNECTED),
  };
};
