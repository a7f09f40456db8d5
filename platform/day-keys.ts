import type pg from 'pg';
import type { Clock } from './clock.ts';
import { keyedDigest, readServiceKeys, serviceKey } from './keyring.ts';
import type { MasterKey } from './master-key.ts';
import { type Sealer, sealerFrom } from './sealing.ts';

/** Seals data of one UTC day, which becomes unreadable when the day's key is destroyed. */
export interface DayKey extends Sealer {
  digest(text: string): string;
}

/** Opens sealed text; null if it was sealed under an earlier, destroyed key of the day. */
export const tryToOpen = (key: Sealer, sealed: Buffer, about: string): Buffer | null => {
  try {
    return key.open(sealed, about);
  } catch {
    return null;
  }
};

export interface DayKeys {
  /**
   * Returns the key of a UTC day (`YYYY-MM-DD`), created on first use; null after the day has expired, even if its key is not
   * destroyed yet.
   */
  of(day: string): Promise<DayKey | null>;
  /** Destroys the keys of expired days. Idempotent. */
  destroyExpired(): Promise<void>;
}

const DAY_MS = 86_400_000;
/** Data sealed at the end of a day lives for 30 days from then. */
const LIVES_DAYS = 31;
const PREFIX = 'day ';
/** Maximum age of cached keys: another process, with a fast clock, may have destroyed them. */
const RECHECK_MS = 30_000;

interface KnownKey {
  readonly bytes: Buffer;
  readonly key: DayKey;
}

/**
 * Manages the keys that seal visitors' addresses and labels, one per UTC day (architecture, rule 9). If a key was destroyed
 * too early, a process that still caches it stores it again; otherwise the day gets a new key, and older data stays sealed.
 * @param recheckMs maximum age of cached keys, milliseconds
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
    // Cached keys stay in use while PostgreSQL is unavailable.
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
      // Runs at least daily, so that no process keeps a key that another has destroyed for longer than a day.
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
