import type pg from 'pg';

/** One statement, whatever the pool's sessions do otherwise: keys and passwords must not be lost with the server. */
export const durably = async (pool: pg.Pool, text: string, values: unknown[]): Promise<void> => {
  const client = await pool.connect();
  try {
    await client.query('begin; set local synchronous_commit to on');
    await client.query(text, values);
    await client.query('commit');
  } catch (error) {
    // Not back to the others with a transaction that has failed.
    client.release(true);
    throw error;
  }
  client.release();
};
