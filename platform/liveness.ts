/** Whether other processes live, by heartbeats that this process sees change on its own monotonic clock. */
export interface Liveness {
  /** Takes in what one heartbeat has read of the others. `nowMs`: monotonic. */
  observe(others: readonly Seen[], nowMs: number): void;
  /** Whether a process counts as gone. One that has no row at all is. */
  isGone(processId: string): boolean;
  /** A session is missing, or a count stands still: look again soon. */
  hasDoubt(): boolean;
}

/** Another process's row. */
export interface Seen {
  readonly process_id: string;
  readonly beats: string;
  /** Whether its heartbeat has a session with the database. */
  readonly connected: boolean;
}

interface Watched {
  readonly beats: string;
  /** When this count was first seen. */
  readonly sinceMs: number;
  readonly sightings: number;
  /** Sightings in a row without a session. */
  readonly unconnected: number;
}

/** A count that stands still for so long, over at least so many sightings, is of a process that is frozen or cut off. */
const STILL_MS = 3_000;
const SIGHTINGS = 3;
/** A process whose session ended has ended; seen twice, since it may just be connecting anew. */
const UNCONNECTED = 2;

export const createLiveness = (): Liveness => {
  let watched = new Map<string, Watched>();
  let lastMs = 0;
  const isStill = ({ sinceMs, sightings }: Watched): boolean =>
    sightings >= SIGHTINGS && lastMs - sinceMs >= STILL_MS;
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
      return seen === undefined || seen.unconnected >= UNCONNECTED || isStill(seen);
    },
    hasDoubt: () =>
      [...watched.values()].some(({ unconnected }) => unconnected > 0 && unconnected < UNCONNECTED),
  };
};
