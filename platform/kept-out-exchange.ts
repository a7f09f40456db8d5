import type pg from 'pg';
import { aheadAfter } from '../domain/kernel/ahead.ts';

/** A rejection of an asker. */
export interface Note {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly wanted: number;
}

/** Exchange of rejections between processes. */
export interface SharedNotes {
  share(asker: string, note: Note): Promise<unknown>;
  /** Loads rejections after `since`, milliseconds. */
  refresh(since: number): Promise<readonly (Note & { readonly asker: string })[]>;
}

/** Minimum interval between exchanges with other processes, per asker. */
const EXCHANGE_MS = 1_000;

/** Exchanges notes with other processes, seldom enough. `noteAt`: takes those of others. */
export const createExchange = (
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
