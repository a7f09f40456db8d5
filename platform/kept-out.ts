import type pg from 'pg';
import { aheadAfter } from '../domain/kernel/ahead.ts';

/** Askers that were recently rejected by a full rate. */
export interface KeptOut {
  /**
   * @param wanted how much of the rate the asker wants; default: it is not known
   * @param forMs how long this rejection counts, at most the window, which is the default
   */
  note(asker: string, wanted?: number, forMs?: number): void;
  /** Returns the number of other askers that were rejected within the window. */
  others(asker: string): number;
  /** Returns how much of the rate each of these wants; infinity: it is not known. */
  wantedByOthers(asker: string): readonly number[];
}

/** Exchange of rejections between processes. */
export interface SharedNotes {
  share(asker: string, note: Note): Promise<unknown>;
  /** Loads rejections after `since`, milliseconds. */
  refresh(since: number): Promise<readonly (Note & { readonly asker: string })[]>;
}

interface Note {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly wanted: number;
}

export interface KeptOutOptions {
  /** How long a rejection counts, milliseconds. */
  readonly windowMs: number;
  /** Returns milliseconds since the epoch. */
  readonly now: () => number;
  /** null: rejections of other processes are ignored. */
  readonly shared: SharedNotes | null;
  /** Returns how much of the rate an asker wants by now, at most. Default: as much as when it was rejected. */
  readonly stillWants?: (asker: string) => number;
}

/** Minimum interval between exchanges with other processes, per asker. */
const EXCHANGE_MS = 1_000;

/**
 * Tracks rejected askers of this and other processes: if all requests of a partner reach one process, it would otherwise not
 * know whom it shuts out elsewhere. Data of other processes is a second old and never waited for; while PostgreSQL is
 * unavailable each process uses only its own.
 */
export const createKeptOut = ({
  windowMs,
  now,
  shared,
  stillWants = () => Number.POSITIVE_INFINITY,
}: KeptOutOptions): KeptOut => {
  /** In the order of their notes: those of other processes, and those that count for less than the window, may be older. */
  const noted = new Map<string, Note>();
  const noteAt = (asker: string, note: Note): void => {
    const before = noted.get(asker);
    const at = Math.max(note.at, before?.at ?? 0);
    const wanted = Math.max(note.wanted, before?.wanted ?? 0);
    noted.delete(asker);
    noted.set(asker, { at, wanted });
  };

  const { refresh, share, forget } = createExchange(shared, () => now() - windowMs, noteAt);

  const forgetOld = (): void => {
    for (const asker of oldOnesOf(noted, now() - windowMs, windowMs)) {
      noted.delete(asker);
      forget(asker);
    }
  };

  return {
    note: (asker, wanted = Number.POSITIVE_INFINITY, forMs = windowMs) => {
      // Here too, because many may be noted before the list is read.
      forgetOld();
      const note = { at: now() - windowMs + forMs, wanted };
      noteAt(asker, note);
      share(asker, note);
    },
    others: (asker) => {
      refresh();
      forgetOld();
      return noted.size - (noted.has(asker) ? 1 : 0);
    },
    wantedByOthers: (asker) => {
      refresh();
      forgetOld();
      const since = now() - windowMs;
      return [...noted].flatMap(([other, { at, wanted }]) =>
        other === asker || at <= since ? [] : Math.min(wanted, stillWants(other)),
      );
    },
  };
};

/** Exchanges notes with other processes, seldom enough. `noteAt`: takes those of others. */
const createExchange = (
  shared: SharedNotes | null,
  since: () => number,
  noteAt: (asker: string, note: Note) => void,
) => {
  const sharedAt = new Map<string, number>();
  let refreshedAt = Number.NEGATIVE_INFINITY;
  const isDue = (at: number): boolean => shared !== null && performance.now() - at >= EXCHANGE_MS;
  return {
    refresh: (): void => {
      if (!isDue(refreshedAt)) return;
      refreshedAt = performance.now();
      shared?.refresh(since()).then(
        (notes) => {
          for (const { asker, ...note } of notes) noteAt(asker, note);
        },
        () => undefined,
      );
    },
    share: (asker: string, note: Note): void => {
      if (!isDue(sharedAt.get(asker) ?? Number.NEGATIVE_INFINITY)) return;
      sharedAt.set(asker, performance.now());
      shared?.share(asker, note).catch(() => undefined);
    },
    forget: (asker: string): void => void sharedAt.delete(asker),
  };
};

/** The first askers whose notes no longer count. Thousands may be noted, and this is asked for each request. */
function* oldOnesOf(noted: ReadonlyMap<string, Note>, since: number, windowMs: number): Iterable<string> {
  for (const [asker, { at }] of noted) {
    // A clock that was ahead has noted some too late.
    if (at > since && at <= since + 2 * windowMs) return;
    yield asker;
  }
}

/** Exchanges the rejections of one rate through PostgreSQL. */
export const sharedNotes = (pool: pg.Pool, rate: string, windowMs: number): SharedNotes => ({
  share: (asker, { at, wanted }) =>
    pool.query({
      name: 'share_kept_out',
      text: `with old as (delete from work.kept_out where rate = $1 and (kept_out_at <= $4 or kept_out_at > $5))
             insert into work.kept_out (rate, asker, kept_out_at, wanted) values ($1, $2, $3, $6)
             on conflict (rate, asker) do update set (kept_out_at, wanted) = (excluded.kept_out_at, excluded.wanted)`,
      values: [
        rate,
        asker,
        new Date(at),
        new Date(at - 2 * windowMs),
        new Date(aheadAfter(at)),
        Number.isFinite(wanted) ? wanted : null,
      ],
    }),
  refresh: async (since) => {
    const { rows } = await pool.query<{ asker: string; kept_out_at: Date; wanted: number | null }>({
      name: 'load_kept_out',
      text: 'select asker, kept_out_at, wanted from work.kept_out where rate = $1 and kept_out_at > $2 and kept_out_at <= $3',
      values: [rate, new Date(since), new Date(aheadAfter(since + windowMs))],
    });
    return rows.map(({ asker, kept_out_at, wanted }) => ({
      asker,
      at: kept_out_at.getTime(),
      wanted: wanted ?? Number.POSITIVE_INFINITY,
    }));
  },
});
