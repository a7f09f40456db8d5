import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { utcDay } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock/clock.ts';

export interface LookupUses {
  /** Notes that the saved result of this canonical address was asked for today. */
  note(ip: string): void;
  /** Writes at once what was noted since the last write. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

const FLUSH_MS = 2_000;
const REMEMBERED = 100_000;

/** On which day each saved result was last asked for: written once a day and process, for it is forgotten by that. */
export const createLookupUses = ({
  pool,
  clock,
}: {
  readonly pool: pg.Pool;
  readonly clock: Clock;
}): LookupUses => {
  /** The day that is written, or is about to be. */
  const noted = new LRUCache<string, string>({ max: REMEMBERED });
  const waiting = new Set<string>();

  const flush = async (): Promise<void> => {
    if (waiting.size === 0) return;
    const ips = [...waiting];
    waiting.clear();
    await pool
      .query(
        // A day that lies ahead was a wrong clock's.
        `insert into work.lookup_use as known (ip, asked_on) select ip, $2::date from unnest($1::text[]) as a (ip) order by ip
         on conflict (ip) do update set asked_on = excluded.asked_on
           where known.asked_on < excluded.asked_on or known.asked_on > excluded.asked_on + 1`,
        [ips, utcDay(clock.now())],
      )
      // It is written when the result is next asked for.
      .catch(() => {
        for (const ip of ips) noted.delete(ip);
      });
  };
  const timer = setInterval(flush, FLUSH_MS).unref();

  return {
    note: (ip) => {
      const today = utcDay(clock.now());
      if (noted.get(ip) === today) return;
      noted.set(ip, today);
      waiting.add(ip);
    },
    flush,
    close: async () => {
      clearInterval(timer);
      await flush();
    },
  };
};
