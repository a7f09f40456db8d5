import type pg from 'pg';
import { aheadAfter } from '../domain/kernel/ahead.ts';

/** For whom a rate was full lately. */
export interface KeptOut {
  /** Notes that the rate was full for an asker. */
  note(asker: string): void;
  /** How many askers other than this one found it full within the window. */
  others(asker: string): number;
}

/** What the processes tell each other. */
export interface SharedNotes {
  tell(asker: string, at: number): Promise<unknown>;
  /** Notes after `since`, milliseconds. */
  refresh(since: number): Promise<readonly { readonly asker: string; readonly at: number }[]>;
}

export interface KeptOutOptions {
  /** How long a note counts. */
  readonly windowMs: number;
  /** Milliseconds. */
  readonly now: () => number;
  /** null: what other processes find does not count. */
  readonly shared: SharedNotes | null;
}

/** How often a process tells of the same asker, and hears of those of other processes. */
const EXCHANGE_MS = 1_000;

/**
 * Remembers for whom a rate was full, here and in other processes: a partner whose requests all reach one process would
 * otherwise not know of those that it keeps out of another. What PostgreSQL says is a second old, and waited for by
 * nobody; while it does not answer, each process goes by what it finds itself.
 */
export const createKeptOut = ({ windowMs, now, shared }: KeptOutOptions): KeptOut => {
  const notedAt = new Map<string, number>();
  const toldAt = new Map<string, number>();
  let refreshedAt = Number.NEGATIVE_INFINITY;

  const noteAt = (asker: string, at: number): void =>
    void notedAt.set(asker, Math.max(at, notedAt.get(asker) ?? 0));

  const refresh = (): void => {
    if (shared === null || performance.now() - refreshedAt < EXCHANGE_MS) return;
    refreshedAt = performance.now();
    shared.refresh(now() - windowMs).then(
      (notes) => {
        for (const { asker, at } of notes) noteAt(asker, at);
      },
      () => undefined,
    );
  };

  const forgetOld = (): void => {
    const since = now() - windowMs;
    for (const [asker, at] of notedAt) {
      if (at > since) continue;
      notedAt.delete(asker);
      toldAt.delete(asker);
    }
  };

  return {
    note: (asker) => {
      noteAt(asker, now());
      if (
        shared === null ||
        performance.now() - (toldAt.get(asker) ?? Number.NEGATIVE_INFINITY) < EXCHANGE_MS
      )
        return;
      toldAt.set(asker, performance.now());
      shared.tell(asker, now()).catch(() => undefined);
    },
    others: (asker) => {
      refresh();
      forgetOld();
      return notedAt.size - (notedAt.has(asker) ? 1 : 0);
    },
  };
};

/** Notes in PostgreSQL, of one rate. */
export const sharedNotes = (pool: pg.Pool, rate: string, windowMs: number): SharedNotes => ({
  tell: (asker, at) =>
    pool.query({
      name: 'tell_kept_out',
      text: `with old as (delete from work.kept_out where rate = $1 and (kept_out_at <= $4 or kept_out_at > $5))
             insert into work.kept_out (rate, asker, kept_out_at) values ($1, $2, $3)
             on conflict (rate, asker) do update set kept_out_at = excluded.kept_out_at`,
      values: [rate, asker, new Date(at), new Date(at - 2 * windowMs), new Date(aheadAfter(at))],
    }),
  refresh: async (since) => {
    const { rows } = await pool.query<{ asker: string; kept_out_at: Date }>({
      name: 'hear_kept_out',
      text: 'select asker, kept_out_at from work.kept_out where rate = $1 and kept_out_at > $2 and kept_out_at <= $3',
      values: [rate, new Date(since), new Date(aheadAfter(since + windowMs))],
    });
    return rows.map(({ asker, kept_out_at }) => ({ asker, at: kept_out_at.getTime() }));
  },
});
