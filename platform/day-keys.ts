import type pg from 'pg';
import { DAY } from '../domain/kernel/time.ts';
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

/** Data sealed at the end of a day lives for 30 days from then. */
const LIVES_DAYS = 31;
const PREFIX = 'day ';
/** Maximum age of cached keys: another process, with a fast clock, may have destroyed them. */
const RECHECK_MS = 30_000;

interface KnownKey {
  readonly bytes: Buffer;
  readonly key: DayKey;
}

export interface DayKeysOptions {
  readonly pool: pg.Pool;
  readonly master: MasterKey;
  readonly clock: Clock;
  /** Maximum age of cached keys, milliseconds. */
  readonly recheckMs?: number;
}

/**
 * Manages the keys that seal visitors' addresses and labels, one per UTC day (architecture, rule 9). If a key was destroyed
 * too early, a process that still caches it stores it again; otherwise the day gets a new key, and older data stays sealed.
 */
export const createDayKeys = (options: DayKeysOptions): DayKeys => new CachedDayKeys(options);

class CachedDayKeys implements DayKeys {
  readonly #options: DayKeysOptions;
  readonly #known = new Map<string, Promise<KnownKey>>();
  #checkedAt = performance.now();
  #checking: Promise<void> = Promise.resolve();

  constructor(options: DayKeysOptions) {
    this.#options = options;
  }

  async of(day: string): Promise<DayKey | null> {
    await this.#checked();
    if (this.#isExpired(day)) {
      this.#forgetExpired();
      return null;
    }
    const before = this.#known.get(day);
    if (before !== undefined) return (await before).key;
    // Runs at least daily, so that no process keeps a key that another has destroyed for longer than a day.
    this.#forgetExpired();
    const loading = this.#load(day);
    this.#known.set(day, loading);
    loading.catch(() => this.#known.delete(day));
    return (await loading).key;
  }

  async destroyExpired(): Promise<void> {
    const { pool } = this.#options;
    this.#forgetExpired();
    const { rows } = await pool.query<{ name: string }>('select name from work.keyring where name ^@ $1', [
      PREFIX,
    ]);
    const expired = rows.map(({ name }) => name).filter((name) => this.#isExpired(name.slice(PREFIX.length)));
    await pool.query('delete from work.keyring where name = any ($1)', [expired]);
  }

  #isExpired(day: string): boolean {
    return Date.parse(day) + LIVES_DAYS * DAY <= this.#options.clock.now();
  }

  #forgetExpired(): void {
    for (const day of this.#known.keys()) if (this.#isExpired(day)) this.#known.delete(day);
  }

  async #load(day: string, made?: Buffer): Promise<KnownKey> {
    const { pool, master } = this.#options;
    const bytes = await serviceKey(pool, master, `${PREFIX}${day}`, made);
    return { bytes, key: { ...sealerFrom(bytes), digest: keyedDigest(bytes) } };
  }

  #checked(): Promise<void> {
    if (performance.now() - this.#checkedAt < (this.#options.recheckMs ?? RECHECK_MS)) return this.#checking;
    this.#checkedAt = performance.now();
    // Cached keys stay in use while PostgreSQL is unavailable.
    this.#checking = this.#recheck().catch(() => undefined);
    return this.#checking;
  }

  async #recheck(): Promise<void> {
    const { pool, master } = this.#options;
    this.#forgetExpired();
    const names = [...this.#known.keys()].map((day) => `${PREFIX}${day}`);
    const stored = await readServiceKeys(pool, master, names);
    for (const [day, loading] of [...this.#known]) {
      const { bytes } = await loading;
      if (stored.get(`${PREFIX}${day}`)?.equals(bytes)) continue;
      const loaded = await this.#load(day, bytes);
      if (!this.#isExpired(day)) this.#known.set(day, Promise.resolve(loaded));
    }
  }
}
