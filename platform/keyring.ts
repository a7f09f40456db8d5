import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import type pg from 'pg';
import { durably } from './durably.ts';
import type { MasterKey, Sealed } from './master-key.ts';

/**
 * A key of the service by name, made once over all processes and kept in PostgreSQL under the master key.
 * @throws when it was sealed under a master key that is not at hand
 */
export const serviceKey = async (pool: pg.Pool, master: MasterKey, name: string): Promise<Buffer> => {
  await makeDurably(pool, master, name);
  const { rows } = await pool.query('select master_key_id, sealed from work.keyring where name = $1', [name]);
  return master.open(rows[0] as Sealed);
};

const makeDurably = async (pool: pg.Pool, master: MasterKey, name: string): Promise<void> => {
  const { master_key_id, sealed } = master.seal(randomBytes(32));
  await durably(
    pool,
    'insert into work.keyring (name, master_key_id, sealed) values ($1, $2, $3) on conflict (name) do nothing',
    [name, master_key_id, sealed],
  );
};

/**
 * Seals all keys of the service under the master key in use. What is sealed so already stays as it is.
 * @returns how many were not
 * @throws when one was sealed under a master key that is not at hand
 */
export const resealKeys = async (pool: pg.Pool, master: MasterKey): Promise<number> => {
  const { rows } = await pool.query<Sealed & { name: string }>(
    'select name, master_key_id, sealed from work.keyring order by name',
  );
  const left = rows.filter(({ master_key_id }) => master_key_id !== master.currentId());
  for (const before of left) {
    const { master_key_id, sealed } = master.seal(master.open(before));
    await durably(
      pool,
      'update work.keyring set master_key_id = $2, sealed = $3 where name = $1 and master_key_id = $4',
      [before.name, master_key_id, sealed, before.master_key_id],
    );
  }
  return left.length;
};

/** A digest that nobody without the key can guess back, for names of streams (architecture, rule 13). */
export const keyedDigest = (key: Buffer): ((text: string) => string) => {
  const secret = createSecretKey(key);
  return (text) => createHmac('sha256', secret).update(text).digest('base64url').slice(0, 32);
};
