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
const EXCHANGE_MS = 1_000;

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
  let exchangedAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (shared === null || performance.now() - exchangedAt < EXCHANGE_MS) return;
    exchangedAt = performance.now();
    const notes = own();
    if (notes.length > 0) shared.share(notes).catch(() => undefined);
    shared.refresh(since()).then(
      (all) => all.forEach(noteAt),
      () => undefined,
    );
  };
};

/** Exchanges the rejections of one rate through PostgreSQL. */
export const sharedNotes = (pool: pg.Pool, rate: string, windowMs: number): SharedNotes => ({
  share: (notes) => {
    const latest = Math.max(...notes.map(({ at }) => at));
    return pool.query({
      name: 'share_kept_out',
      text: `with old as (
               delete from work.kept_out as known using (
                 select rate, asker from work.kept_out
                 where rate = $1 and (kept_out_at <= $5 or kept_out_at > $6) for update skip locked) as o
               where known.rate = o.rate and known.asker = o.asker)
             insert into work.kept_out (rate, asker, kept_out_at, wanted)
             select $1, asker, kept_out_at, wanted
             from unnest($2::text[], $3::timestamptz[], $4::real[]) as n (asker, kept_out_at, wanted) order by asker
             on conflict (rate, asker) do update set (kept_out_at, wanted) = (excluded.kept_out_at, excluded.wanted)`,
      values: [
        rate,
        notes.map(({ asker }) => asker),
        notes.map(({ at }) => new Date(at)),
        notes.map(({ wanted }) => (Number.isFinite(wanted) ? wanted : null)),
        new Date(latest - 2 * windowMs),
        new Date(aheadAfter(latest)),
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
