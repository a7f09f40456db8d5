import type pg from 'pg';
import type { Clock } from './clock.ts';
import { keyedDigest, readServiceKeys, serviceKey } from './keyring.ts';
import type { MasterKey } from './master-key.ts';
import { type Sealer, sealerFrom } from './sealing.ts';

/** What was recorded on one UTC day, and is gone when the day's key is. */
export interface DayKey extends Sealer {
  digest(text: string): string;
}

/** What was sealed about something; null: it was sealed under an earlier key of the day, which was destroyed. */
export const tryToOpen = (key: Sealer, sealed: Buffer, about: string): Buffer | null => {
  try {
    return key.open(sealed, about);
  } catch {
    return null;
  }
};

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
/** How long a process trusts the keys in its memory: another process's clock may have been ahead and destroyed them. */
const RECHECK_MS = 30_000;

interface KnownKey {
  readonly bytes: Buffer;
  readonly key: DayKey;
}

/**
 * The keys that visitors' addresses and labels are sealed under, one a UTC day (architecture, rule 9). A key that was
 * destroyed before its day expired is stored again by a process that still has it; else the day gets a new key, and what
 * was sealed under the earlier one does not open any more.
 * @param recheckMs how long a key is used without asking PostgreSQL for it, milliseconds
 */
export const createDayKeys = ({
  pool,
  master,
  clock,
  recheckMs = RECHECK_MS,
}: {
  readonly pool: pg.Pool;
  readonly master: MasterKey;
  readonly clock: Clock;
  readonly recheckMs?: number;
}): DayKeys => {
  const known = new Map<string, Promise<KnownKey>>();
  let checkedAt = performance.now();
  let checking: Promise<void> = Promise.resolve();

  const isExpired = (day: string): boolean => Date.parse(day) + LIVES_DAYS * DAY_MS <= clock.now();

  const load = async (day: string, made?: Buffer): Promise<KnownKey> => {
    const bytes = await serviceKey(pool, master, `${PREFIX}${day}`, made);
    return { bytes, key: { ...sealerFrom(bytes), digest: keyedDigest(bytes) } };
  };

  const forgetExpired = (): void => {
    for (const day of known.keys()) if (isExpired(day)) known.delete(day);
  };

  const recheck = async (): Promise<void> => {
    forgetExpired();
    const stored = await readServiceKeys(
      pool,
      master,
      [...known.keys()].map((day) => `${PREFIX}${day}`),
    );
    for (const [day, loading] of [...known]) {
      const { bytes } = await loading;
      if (stored.get(`${PREFIX}${day}`)?.equals(bytes)) continue;
      const loaded = await load(day, bytes);
      if (!isExpired(day)) known.set(day, Promise.resolve(loaded));
    }
  };

  const checked = (): Promise<void> => {
    if (performance.now() - checkedAt < recheckMs) return checking;
    checkedAt = performance.now();
    // Without PostgreSQL the known keys serve on.
    checking = recheck().catch(() => undefined);
    return checking;
  };

  return {
    of: async (day) => {
      await checked();
      if (isExpired(day)) {
        forgetExpired();
        return null;
      }
      const before = known.get(day);
      if (before !== undefined) return (await before).key;
      // No process keeps a key that another has destroyed for more than a day: it comes by here every day.
      forgetExpired();
      const loading = load(day);
      known.set(day, loading);
      loading.catch(() => known.delete(day));
      return (await loading).key;
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
