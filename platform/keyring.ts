import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import type pg from 'pg';
import { durably } from './durably.ts';
import type { MasterKey, Sealed } from './master-key.ts';

interface Row extends Sealed {
  readonly name: string;
}

/** Binds a sealed key to its row's name, so that it cannot be opened in another row. */
const about = (name: string): string => `work.keyring ${name}`;

/**
 * Opens a row. Earlier versions sealed without the name.
 * @throws if the master key is unknown, or the row was moved or changed
 */
const openRow = (master: MasterKey, row: Row): { readonly key: Buffer; readonly isBound: boolean } => {
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
};

/**
 * Returns a key of the service by name. It is created once for all processes and stored under the master key.
 * @param made bytes of the key if it must be created
 * @throws what `openRow` throws
 */
export const serviceKey = async (
  pool: pg.Pool,
  master: MasterKey,
  name: string,
  made: Buffer = randomBytes(32),
): Promise<Buffer> => {
  await makeDurably(pool, master, name, made);
  const key = (await readServiceKeys(pool, master, [name])).get(name);
  if (key === undefined) throw new Error(`the key ${name} was destroyed while it was made`);
  return key;
};

/** Reads those of the named keys that exist. @throws what `openRow` throws */
export const readServiceKeys = async (
  pool: pg.Pool,
  master: MasterKey,
  names: readonly string[],
): Promise<ReadonlyMap<string, Buffer>> => {
  const { rows } = await pool.query<Row>(
    'select name, master_key_id, sealed from work.keyring where name = any ($1)',
    [names],
  );
  return new Map(rows.map((row) => [row.name, openRow(master, row).key]));
};

const makeDurably = async (pool: pg.Pool, master: MasterKey, name: string, made: Buffer): Promise<void> => {
  const { master_key_id, sealed } = master.seal(made, about(name));
  await durably(
    pool,
    'insert into work.keyring (name, master_key_id, sealed) values ($1, $2, $3) on conflict (name) do nothing',
    [name, master_key_id, sealed],
  );
};

/**
 * Seals all keys of the service under the current master key and binds them to their names; skips those already done.
 * @returns the number of resealed keys
 * @throws what `openRow` throws
 */
export const resealKeys = (pool: pg.Pool, master: MasterKey): Promise<number> =>
  reseal(pool, master, () => true);

/** Binds keys of an earlier version to their names, except those under another master key. @returns the number of keys */
export const bindKeys = (pool: pg.Pool, master: MasterKey): Promise<number> =>
  reseal(pool, master, (id, current) => id === current);

/** @param isWanted selects rows by the id of their master key and of the current one */
const reseal = async (
  pool: pg.Pool,
  master: MasterKey,
  isWanted: (id: string, current: string) => boolean,
): Promise<number> => {
  const current = master.currentId();
  const { rows } = await pool.query<Row>(
    'select name, master_key_id, sealed from work.keyring order by name',
  );
  let resealed = 0;
  for (const before of rows.filter((row) => isWanted(row.master_key_id, current))) {
    const { key, isBound } = openRow(master, before);
    if (isBound && before.master_key_id === current) continue;
    const { master_key_id, sealed } = master.seal(key, about(before.name));
    await durably(
      pool,
      'update work.keyring set master_key_id = $2, sealed = $3 where name = $1 and sealed = $4',
      [before.name, master_key_id, sealed, before.sealed],
    );
    resealed += 1;
  }
  return resealed;
};

/** Creates a keyed digest for stream names, which cannot be reversed by guessing (architecture, rule 13). */
export const keyedDigest = (key: Buffer): ((text: string) => string) => {
  const secret = createSecretKey(key);
  return (text) => createHmac('sha256', secret).update(text).digest('base64url').slice(0, 32);
};
