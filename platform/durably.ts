import type pg from 'pg';

/** A transaction, whatever the pool's sessions do otherwise: keys and passwords must not be lost with the server. */
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
    // Not back to the others with a transaction that has failed.
    client.release(true);
    throw error;
  }
  client.release();
  return result;
};

/** One statement, in the same way. */
export const durably = (pool: pg.Pool, text: string, values: unknown[]): Promise<void> =>
  inDurable(pool, async (client) => {
    await client.query(text, values);
  });

/**
 * A table expression of one row: a single statement that reads it commits durably, without a transaction around it. For
 * rows that a processor writes about an event: its checkpoint goes on in memory past a crash of the server, which would
 * take back rows that are not durable.
 */
export const DURABLY = "set_config('synchronous_commit', 'on', true)";
