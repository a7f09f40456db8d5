import { randomUUID } from 'node:crypto';
import {
  createExchange,
  EXCHANGE_MS,
  type Note,
  type NoteOf,
  type SharedNotes,
} from './kept-out-exchange.ts';

/** Askers that were recently rejected by a full rate. */
export interface KeptOut {
  /**
   * @param wanted how much of the rate the asker wants; default: it is not known
   */
  note(asker: string, wanted?: number): void;
  /** Returns how much of the rate each other asker wants that was rejected within the window; infinity: it is not known. */
  wantedByOthers(asker: string): readonly number[];
  /** Returns how much each other process has noted for this asker within the window, by process. */
  wantedElsewhere(asker: string): ReadonlyMap<string, number>;
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

/** Askers of which the list is made for each request: it takes half a millisecond for a thousand. */
const FEW = 100;
const REMEMBERED_MS = 100;

/** Makes a list at most ten times a second while it is long. */
const remembered = <T>(now: () => number, make: () => readonly T[]): (() => readonly T[]) => {
  let made: readonly T[] = [];
  let madeAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (made.length > FEW && Math.abs(now() - madeAt) < REMEMBERED_MS) return made;
    made = make();
    madeAt = now();
    return made;
  };
};

/** Those that this process rejected. */
const createOwn = ({ windowMs, now, stillWants }: KeptOutOptions, suffix: string) => {
  const notes = new Map<string, Note>();
  /** Noted since the last exchange. */
  const fresh = new Set<string>();
  let sharedAt = Number.NEGATIVE_INFINITY;
  const wantedOf = (asker: string, { wanted }: Note): number =>
    stillWants === undefined ? wanted : Math.min(wanted, stillWants(asker));
  return {
    notes,
    wantedOf,
    note: (asker: string, wanted: number): void => {
      put(notes, asker, { at: now(), wanted });
      fresh.add(asker);
    },
    /** What is new to the other processes, or is wanted still. */
    toShare: (): NoteOf[] => {
      const isDue = stillWants !== undefined && Math.abs(now() - sharedAt) >= EXCHANGE_MS;
      if (fresh.size === 0 && !isDue) return [];
      sharedAt = now();
      const shared: NoteOf[] = [];
      for (const [asker, note] of notes) {
        if (note.at <= now() - windowMs) continue;
        const wanted = wantedOf(asker, note);
        const isStill = stillWants !== undefined && wanted >= 1;
        if (!isStill && !fresh.has(asker)) continue;
        shared.push({ asker: asker + suffix, at: isStill ? now() : note.at, wanted });
      }
      fresh.clear();
      return shared;
    },
  };
};

/** A note that another process has shared. */
interface NoteElsewhere extends Note {
  /** When it was seen to change, by this process's own clock: that of another may differ by seconds. */
  readonly receivedAt: number;
}

/** Those that other processes have shared, by asker and process. */
const createElsewhere = (now: () => number) => {
  const notes = new Map<string, NoteElsewhere>();
  const byAsker = new Map<string, Map<string, NoteElsewhere>>();
  return {
    notes,
    set: (key: string, { at, wanted }: Note): void => {
      const before = notes.get(key);
      // One that is new may be of a process that has ended.
      const receivedAt = before === undefined ? at : now();
      const note = { at, wanted, receivedAt: before?.at === at ? before.receivedAt : receivedAt };
      notes.delete(key);
      notes.set(key, note);
      const ofAsker = byAsker.get(askerOf(key)) ?? new Map<string, NoteElsewhere>();
      byAsker.set(askerOf(key), ofAsker.set(processOf(key), note));
    },
    delete: (key: string): void => {
      notes.delete(key);
      const ofAsker = byAsker.get(askerOf(key));
      ofAsker?.delete(processOf(key));
      if (ofAsker?.size === 0) byAsker.delete(askerOf(key));
    },
    of: (asker: string): [string, NoteElsewhere][] => [...(byAsker.get(asker) ?? [])],
  };
};

/**
 * Tracks rejected askers of this and other processes: if all requests of a partner reach one process, it would otherwise not
 * know whom it shuts out elsewhere. Data of other processes is a second old and never waited for; while PostgreSQL is
 * unavailable each process uses only its own.
 */
export const createKeptOut = (options: KeptOutOptions): KeptOut => {
  const { windowMs, now, shared, stillWants } = options;
  const suffix = `${PROCESS}${randomUUID()}`;
  const own = createOwn(options, suffix);
  const elsewhere = createElsewhere(now);
  const since = (): number => now() - windowMs;
  const exchange = createExchange(shared, own.toShare, since, ({ asker, ...note }) => {
    if (!asker.endsWith(suffix)) elsewhere.set(asker, note);
  });

  const forgetOld = (): void => {
    for (const asker of oldOnesOf(own.notes, since(), windowMs)) own.notes.delete(asker);
    for (const key of oldOnesOf(elsewhere.notes, since(), windowMs)) elsewhere.delete(key);
  };

  const wantedThere = ({ receivedAt, wanted }: NoteElsewhere): number =>
    stillWants === undefined || Math.abs(now() - receivedAt) < SHARED_MS ? wanted : LITTLE;

  const wantedByAll = remembered(now, () => {
    forgetOld();
    const wanted = new Map<string, number>();
    const add = (asker: string, more: number) => wanted.set(asker, more + (wanted.get(asker) ?? 0));
    for (const [key, note] of elsewhere.notes) if (note.at > since()) add(askerOf(key), wantedThere(note));
    for (const [asker, note] of own.notes) if (note.at > since()) add(asker, own.wantedOf(asker, note));
    return [...wanted].sort(([, one], [, other]) => one - other);
  });

  return {
    note: (asker, wanted = Number.POSITIVE_INFINITY) => {
      // Here too, because many may be noted before the list is read.
      forgetOld();
      own.note(asker, wanted);
      exchange();
    },
    wantedByOthers: (asker) => {
      exchange();
      return wantedByAll().flatMap(([other, wanted]) => (other === asker ? [] : [wanted]));
    },
    wantedElsewhere: (asker) => {
      exchange();
      const counting = elsewhere.of(asker).filter(([, { at }]) => at > since());
      return new Map(counting.map(([process, note]) => [process, wantedThere(note)]));
    },
  };
};

/** Between an asker and the process that has shared it; none where that is of the release before. */
const PROCESS = ' at ';
const askerOf = (key: string): string => key.split(PROCESS, 1)[0] as string;
const processOf = (key: string): string => key.slice(askerOf(key).length);

/** Puts a note last: the order is that of the notes. */
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
