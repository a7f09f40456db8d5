import type pg from 'pg';
import { aheadAfter } from '../domain/kernel/ahead.ts';

/** A rejection of an asker. */
export interface Note {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly wanted: number;
}

export interface NoteOf extends Note {
  readonly asker: string;
}

/** Exchange of rejections between processes. */
export interface SharedNotes {
  share(notes: readonly NoteOf[]): Promise<unknown>;
  /** Loads rejections after `since`, milliseconds. */
  refresh(since: number): Promise<readonly NoteOf[]>;
}

/** Minimum interval between exchanges with other processes. */
export const EXCHANGE_MS = 1_000;

/**
 * Returns a function that exchanges notes with other processes, seldom enough. `own`: returns those of this process; `noteAt`: takes
 * those of all. One statement shares all, because a flood may name a thousand partners.
 */
export const createExchange = (
  shared: SharedNotes | null,
  own: () => readonly NoteOf[],
  since: () => number,
  noteAt: (note: NoteOf) => void,
): (() => void) => {
  let sharedAt = Number.NEGATIVE_INFINITY;
  let refreshedAt = Number.NEGATIVE_INFINITY;
  /** Statements under way: while PostgreSQL hangs, more would take all connections of the pool. */
  let underWay = 0;
  const isDue = (at: number): boolean => underWay === 0 && performance.now() - at >= EXCHANGE_MS;
  const run = (statement: Promise<unknown>): void => {
    underWay += 1;
    const end = () => {
      underWay -= 1;
    };
    statement.then(end, end);
  };
  return () => {
    if (shared === null) return;
    const mayRefresh = isDue(refreshedAt);
    const notes = isDue(sharedAt) ? own() : [];
    if (notes.length > 0) {
      sharedAt = performance.now();
      run(shared.share(notes));
    }
    if (mayRefresh) {
      refreshedAt = performance.now();
      run(shared.refresh(since()).then((all) => all.forEach(noteAt)));
    }
  };
};

/** Exchanges the rejections of one rate through PostgreSQL. */
export const sharedNotes = (pool: pg.Pool, rate: string, windowMs: number): SharedNotes => ({
  share: async (notes) => {
    const latest = Math.max(...notes.map(({ at }) => at));
    // By itself: with both in one transaction, two processes would each wait for rows that the other deletes.
    await pool.query({
      name: 'forget_kept_out',
      text: `delete from work.kept_out where ctid = any (array(
               select ctid from work.kept_out
               where rate = $1 and (kept_out_at <= $2 or kept_out_at > $3) for update skip locked))`,
      values: [rate, new Date(latest - 2 * windowMs), new Date(aheadAfter(latest))],
    });
    return pool.query({
      name: 'share_kept_out',
      text: `insert into work.kept_out (rate, asker, kept_out_at, wanted)
             select $1, asker, kept_out_at, wanted
             from unnest($2::text[], $3::timestamptz[], $4::real[]) as n (asker, kept_out_at, wanted) order by asker
             on conflict (rate, asker) do update set (kept_out_at, wanted) = (excluded.kept_out_at, excluded.wanted)`,
      values: [
        rate,
        notes.map(({ asker }) => asker),
        notes.map(({ at }) => new Date(at)),
        notes.map(({ wanted }) => (Number.isFinite(wanted) ? wanted : null)),
      ],
    });
  },
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
