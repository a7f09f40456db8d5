import type pg from 'pg';

/** Runs a transaction that commits durably, whatever the pool's default: keys and passwords must survive a server crash. */
export const inDurable = async <T>(
  pool: pg.Pool,
  work: (client: pg.ClientBase) => Promise<T>,
): Promise<T> => {
  const client = await pool.connect();
  let result: T;
  try {
    await client.query('begin; set local synchronous_commit to on');
    result = await work(client);
    await client.query('commit');
  } catch (error) {
    // The connection may still be in the failed transaction, so it must not return to the pool.
    client.release(true);
    throw error;
  }
  client.release();
  return result;
};

/** Runs one statement in a durable transaction. */
export const durably = (pool: pg.Pool, text: string, values: unknown[]): Promise<void> =>
  inDurable(pool, async (client) => {
    await client.query(text, values);
  });

/**
 * A table expression of one row that makes the single statement reading it commit durably. For rows that a processor writes
 * about an event: its checkpoint in memory survives a server crash, which would lose rows that are not durable.
 */
export const DURABLY = "set_config('synchronous_commit', 'on', true)";
