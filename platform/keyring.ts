import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import type pg from 'pg';
import { durably } from './durably.ts';
import type { MasterKey, Sealed } from './master-key.ts';

interface Row extends Sealed {
  readonly name: string;
}

/** Binds a sealed key to its row: put into another row, it does not open. */
const about = (name: string): string => `work.keyring ${name}`;

/**
 * Opens a row. Earlier versions sealed without the name.
 * @throws when it was sealed under a master key that is not at hand, or in another row, or was changed
 */
const openRow = (master: MasterKey, row: Row): { readonly key: Buffer; readonly isBound: boolean } => {
  try {
    return { key: master.open(row, about(row.name)), isBound: true };
  } catch {
    return { key: master.open(row), isBound: false };
  }
};

/**
 * A key of the service by name, made once over all processes and kept in PostgreSQL under the master key.
 * @param made the bytes that it gets where there is none
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

/**
 * The keys of these names that there are.
 * @throws what `openRow` throws
 */
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
 * Seals all keys of the service under the master key in use and bound to their names. What is sealed so already stays
 * as it is.
 * @returns how many were not
 * @throws what `openRow` throws
 */
export const resealKeys = (pool: pg.Pool, master: MasterKey): Promise<number> =>
  reseal(pool, master, () => true);

/**
 * Binds the keys that an earlier version sealed to their names. Those under another master key are left to its change.
 * @returns how many were not bound
 */
export const bindKeys = (pool: pg.Pool, master: MasterKey): Promise<number> =>
  reseal(pool, master, (id, current) => id === current);

/** @param isWanted by the id of the master key that a row is sealed under, and of the one in use */
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

/** A digest that nobody without the key can guess back, for names of streams (architecture, rule 13). */
export const keyedDigest = (key: Buffer): ((text: string) => string) => {
  const secret = createSecretKey(key);
  return (text) => createHmac('sha256', secret).update(text).digest('base64url').slice(0, 32);
};
