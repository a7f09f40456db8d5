import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import type pg from 'pg';
import type { MasterKey } from './master-key.ts';

/**
 * A key of the service by name, made once over all processes and kept in PostgreSQL under the master key.
 * @throws when it was sealed under another master key
 */
export const serviceKey = async (pool: pg.Pool, master: MasterKey, name: string): Promise<Buffer> => {
  await makeDurably(pool, master, name);
  const { rows } = await pool.query('select master_key_id, sealed from work.keyring where name = $1', [name]);
  const row = rows[0] as { master_key_id: string; sealed: Buffer };
  if (row.master_key_id !== master.id) {
    throw new Error('MASTER_KEY is not the one that the keys in this database are sealed under');
  }
  return master.open(row.sealed);
};

/** Whatever the pool's sessions do otherwise: a key that is used must not be lost with the server. */
const makeDurably = async (pool: pg.Pool, master: MasterKey, name: string): Promise<void> => {
  const client = await pool.connect();
  try {
    await client.query('begin; set local synchronous_commit to on');
    await client.query(
      'insert into work.keyring (name, master_key_id, sealed) values ($1, $2, $3) on conflict (name) do nothing',
      [name, master.id, master.seal(randomBytes(32))],
    );
    await client.query('commit');
  } finally {
    client.release();
  }
};

/** A digest that nobody without the key can guess back, for names of streams (architecture, rule 13). */
export const keyedDigest = (key: Buffer): ((text: string) => string) => {
  const secret = createSecretKey(key);
  return (text) => createHmac('sha256', secret).update(text).digest('base64url').slice(0, 32);
};
