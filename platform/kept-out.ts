import { randomUUID } from 'node:crypto';
import { createExchange, type Note, type SharedNotes } from './kept-out-exchange.ts';

/** Askers that were recently rejected by a full rate. */
export interface KeptOut {
  /**
   * @param wanted how much of the rate the asker wants; default: it is not known
   * @param forMs how long this rejection counts, at most the window, which is the default
   */
  note(asker: string, wanted?: number, forMs?: number): void;
  /** Returns how much of the rate each other asker wants that was rejected within the window; infinity: it is not known. */
  wantedByOthers(asker: string): readonly number[];
}

export interface KeptOutOptions {
  /** How long a rejection counts, milliseconds. */
  readonly windowMs: number;
  /** Returns milliseconds since the epoch. */
  readonly now: () => number;
  /** null: rejections of other processes are ignored. */
  readonly shared: SharedNotes | null;
  /**
   * Returns how much of the rate an asker wants by now of this process, at most. Processes then share it each second. Default: as much
   * as when it was rejected, for as long as that counts.
   */
  readonly stillWants?: (asker: string) => number;
}

/** Time for which what an asker wanted of another process counts unless it is shared again, and afterwards little. */
const SHARED_MS = 5_000;
/** What is kept for an asker that sends nothing: it finds room if it comes back, and a hundred such cost the others little. */
export const LITTLE = 0.1;

/**
 * Tracks rejected askers of this and other processes: if all requests of a partner reach one process, it would otherwise not
 * know whom it shuts out elsewhere. Data of other processes is a second old and never waited for; while PostgreSQL is
 * unavailable each process uses only its own.
 */
export const createKeptOut = ({ windowMs, now, shared, stillWants }: KeptOutOptions): KeptOut => {
  const own = new Map<string, Note>();
  /** By asker and process, whose wants add up. */
  const elsewhere = new Map<string, Note>();
  const suffix = ` ${randomUUID()}`;
  const { refresh, share, forget } = createExchange(
    shared,
    () => now() - windowMs,
    (key, note) => {
      if (key.endsWith(suffix)) return;
      elsewhere.delete(key);
      elsewhere.set(key, note);
    },
  );

  const forgetOld = (): void => {
    for (const notes of [own, elsewhere]) {
      for (const asker of oldOnesOf(notes, now() - windowMs, windowMs)) {
        notes.delete(asker);
        if (notes === own) forget(asker + suffix);
      }
    }
  };

  const wantedHere = (asker: string, { wanted }: Note): number => {
    if (stillWants === undefined) return wanted;
    const still = Math.min(wanted, stillWants(asker));
    if (still >= 1) share(asker + suffix, { at: now(), wanted: still });
    return still;
  };
  const wantedThere = ({ at, wanted }: Note): number =>
    stillWants === undefined || at > now() - SHARED_MS ? wanted : LITTLE;

  /** What each asker wants of all processes. */
  const wantedByAll = (): Map<string, number> => {
    refresh();
    forgetOld();
    const since = now() - windowMs;
    const wanted = new Map<string, number>();
    const add = (asker: string, more: number) => wanted.set(asker, more + (wanted.get(asker) ?? 0));
    for (const [key, note] of elsewhere) if (note.at > since) add(askerOf(key), wantedThere(note));
    for (const [asker, note] of own) if (note.at > since) add(asker, wantedHere(asker, note));
    return wanted;
  };

  return {
    note: (asker, wanted = Number.POSITIVE_INFINITY, forMs = windowMs) => {
      // Here too, because many may be noted before the list is read.
      forgetOld();
      const note = { at: now() - windowMs + forMs, wanted };
      put(own, asker, note);
      share(asker + suffix, note);
    },
    wantedByOthers: (asker) => {
      const all = wantedByAll();
      all.delete(asker);
      return [...all.values()];
    },
  };
};

/** Askers are ids. One that a process of the release before has shared stands for itself. */
const askerOf = (key: string): string => key.split(' ', 1)[0] as string;

/** Puts a note last: the order is that of the notes, but those that count for less than the window, and of others, may be older. */
const put = (notes: Map<string, Note>, asker: string, note: Note): void => {
  const before = notes.get(asker);
  const at = Math.max(note.at, before?.at ?? 0);
  const wanted = Math.max(note.wanted, before?.wanted ?? 0);
  notes.delete(asker);
  notes.set(asker, { at, wanted });
};

/** The first askers whose notes no longer count. Thousands may be noted, and this is asked for each request. */
function* oldOnesOf(noted: ReadonlyMap<string, Note>, since: number, windowMs: number): Iterable<string> {
  for (const [asker, { at }] of noted) {
    // A clock that was ahead has noted some too late.
    if (at > since && at <= since + 2 * windowMs) return;
    yield asker;
  }
}
