import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  randomBytes,
  sign,
  verify,
} from 'node:crypto';
import type pg from 'pg';
import { DAY } from '../../domain/kernel/time.ts';
import type { Clock } from '../clock/clock.ts';
import { queryWithSynchronousCommit } from '../postgres/transactions.ts';
import { type MasterKey, type Sealed, type Sealer, sealerFrom } from './master-key.ts';

interface Row extends Sealed {
  readonly name: string;
}

/** Binds a sealed key to its row's name, so that it cannot be opened in another row. */
const about = (name: string): string => `work.keyring ${name}`;

/**
 * Opens a row. Earlier versions sealed without the name.
 * @throws if the master key is unknown, or the row was moved or changed
 */
function openRow(master: MasterKey, row: Row): { readonly key: Buffer; readonly isBound: boolean } {
  try {
    return { key: master.open(row, about(row.name)), isBound: true };
  } catch (error) {
    try {
      return { key: master.open(row), isBound: false };
    } catch {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`${reason}: the key ${row.name} of work.keyring does not open`);
    }
  }
}

/**
 * Returns a key of the service by name. It is created once for all processes and stored under the master key.
 * @param made bytes of the key if it must be created
 * @throws what `openRow` throws
 */
export async function serviceKey(
  pool: pg.Pool,
  master: MasterKey,
  name: string,
  made: Buffer = randomBytes(32),
): Promise<Buffer> {
  await makeDurably(pool, master, name, made);
  const key = (await readServiceKeys(pool, master, [name])).get(name);
  if (key === undefined) throw new Error(`the key ${name} was destroyed while it was made`);
  return key;
}

/** Reads those of the named keys that exist. @throws what `openRow` throws */
async function readServiceKeys(
  pool: pg.Pool,
  master: MasterKey,
  names: readonly string[],
): Promise<ReadonlyMap<string, Buffer>> {
  const { rows } = await pool.query<Row>(
    'select name, master_key_id, sealed from work.keyring where name = any ($1)',
    [names],
  );
  return new Map(rows.map((row) => [row.name, openRow(master, row).key]));
}

async function makeDurably(pool: pg.Pool, master: MasterKey, name: string, made: Buffer): Promise<void> {
  const { master_key_id, sealed } = master.seal(made, about(name));
  await queryWithSynchronousCommit(
    pool,
    'insert into work.keyring (name, master_key_id, sealed) values ($1, $2, $3) on conflict (name) do nothing',
    [name, master_key_id, sealed],
  );
}

/**
 * Seals all keys of the service under the current master key and binds them to their names; skips those already done.
 * @returns the number of resealed keys
 * @throws what `openRow` throws
 */
export const resealKeys = (pool: pg.Pool, master: MasterKey): Promise<number> =>
  reseal(pool, master, () => true);

/** Returns the names of keys that a master key does not open. */
export async function keysThatDoNotOpen(pool: pg.Pool, master: MasterKey): Promise<string[]> {
  const { rows } = await pool.query<Row>(
    'select name, master_key_id, sealed from work.keyring order by name',
  );
  return rows.flatMap((row) => {
    try {
      openRow(master, row);
      return [];
    } catch {
      return [row.name];
    }
  });
}

/** Binds keys of an earlier version to their names, except those under another master key. @returns the number of keys */
export const bindKeys = (pool: pg.Pool, master: MasterKey): Promise<number> =>
  reseal(pool, master, (id, current) => id === current);

/** @param isWanted selects rows by the id of their master key and of the current one */
async function reseal(
  pool: pg.Pool,
  master: MasterKey,
  isWanted: (id: string, current: string) => boolean,
): Promise<number> {
  const current = master.currentId();
  const { rows } = await pool.query<Row>(
    'select name, master_key_id, sealed from work.keyring order by name',
  );
  let resealed = 0;
  for (const before of rows.filter((row) => isWanted(row.master_key_id, current))) {
    const { key, isBound } = openRow(master, before);
    if (isBound && before.master_key_id === current) continue;
    const { master_key_id, sealed } = master.seal(key, about(before.name));
    await queryWithSynchronousCommit(
      pool,
      'update work.keyring set master_key_id = $2, sealed = $3 where name = $1 and sealed = $4',
      [before.name, master_key_id, sealed, before.sealed],
    );
    resealed += 1;
  }
  return resealed;
}

/** Creates a keyed digest for stream names, which cannot be reversed by guessing (architecture, rule 13). */
export function keyedDigest(key: Buffer): (text: string) => string {
  const secret = createSecretKey(key);
  return (text) => createHmac('sha256', secret).update(text).digest('base64url').slice(0, 32);
}

/** Seals data of one UTC day, which becomes unreadable when the day's key is destroyed. */
export interface DayKey extends Sealer {
  digest(text: string): string;
}

/** Opens sealed text; null if it was sealed under an earlier, destroyed key of the day. */
export function tryToOpen(key: Sealer, sealed: Buffer, about: string): Buffer | null {
  try {
    return key.open(sealed, about);
  } catch {
    return null;
  }
}

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
const KEY_LIFETIME_DAYS = 31;
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
    return Date.parse(day) + KEY_LIFETIME_DAYS * DAY <= this.#options.clock.now();
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

/** Signs short texts with Ed25519. */
export interface Signer {
  /** SubjectPublicKeyInfo (RFC 8410), DER in base64. */
  readonly publicKey: string;
  /** @returns the signature of the text's UTF-8 bytes, in base64 */
  sign(text: string): string;
  /** @returns whether the signature (base64) of the text is from this key */
  verify(text: string, signature: string): boolean;
}

/** Prefix of the 32 bytes of a private key in PKCS #8 (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Creates a signer from the 32 bytes of an Ed25519 private key. */
export function signerFrom(key: Buffer): Signer {
  const der = Buffer.concat([PKCS8_PREFIX, key]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(privateKey);
  return {
    publicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    sign: (text) => sign(null, Buffer.from(text), privateKey).toString('base64'),
    verify: (text, signature) => verify(null, Buffer.from(text), publicKey, Buffer.from(signature, 'base64')),
  };
}
