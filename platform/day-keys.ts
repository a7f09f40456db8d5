import type pg from 'pg';
import type { Clock } from './clock.ts';
import { keyedDigest, serviceKey } from './keyring.ts';
import type { MasterKey } from './master-key.ts';
import { type Sealer, sealerFrom } from './sealing.ts';

/** What was recorded on one UTC day, and is gone when the day's key is. */
export interface DayKey extends Sealer {
  digest(text: string): string;
}

export interface DayKeys {
  /**
   * The key of a UTC day (`YYYY-MM-DD`), made on first use; null once the day has expired, whether its key has been
   * destroyed yet or not.
   */
  of(day: string): Promise<DayKey | null>;
  /** Destroys the keys of the days that have expired. Repeating it is harmless. */
  destroyExpired(): Promise<void>;
}

const DAY_MS = 86_400_000;
/** What is sealed on the last moment of a day lives for 30 days from then. */
const LIVES_DAYS = 31;
const PREFIX = 'day ';

/** The keys that visitors' addresses and labels are sealed under, one a UTC day (architecture, rule 9). */
export const createDayKeys = ({
  pool,
  master,
  clock,
}: {
  readonly pool: pg.Pool;
  readonly master: MasterKey;
  readonly clock: Clock;
}): DayKeys => {
  const known = new Map<string, Promise<DayKey>>();

  const isExpired = (day: string): boolean => Date.parse(day) + LIVES_DAYS * DAY_MS <= clock.now();

  const load = async (day: string): Promise<DayKey> => {
    const key = await serviceKey(pool, master, `${PREFIX}${day}`);
    return { ...sealerFrom(key), digest: keyedDigest(key) };
  };

  const forgetExpired = (): void => {
    for (const day of known.keys()) if (isExpired(day)) known.delete(day);
  };

  return {
    of: (day) => {
      if (isExpired(day)) {
        forgetExpired();
        return Promise.resolve(null);
      }
      const before = known.get(day);
      if (before !== undefined) return before;
      // No process keeps a key that another has destroyed for more than a day: it comes by here every day.
      forgetExpired();
      const loading = load(day);
      known.set(day, loading);
      loading.catch(() => known.delete(day));
      return loading;
    },
    destroyExpired: async () => {
      forgetExpired();
      const { rows } = await pool.query<{ name: string }>('select name from work.keyring where name ^@ $1', [
        PREFIX,
      ]);
      const expired = rows.map(({ name }) => name).filter((name) => isExpired(name.slice(PREFIX.length)));
      await pool.query('delete from work.keyring where name = any ($1)', [expired]);
    },
  };
};
