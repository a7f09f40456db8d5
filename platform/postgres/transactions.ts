import type pg from 'pg';
import { openClient } from './pool.ts';

/** Runs a transaction. `begin`: the statements that open it. */
export async function inTransaction<T>(
  pool: pg.Pool,
  begin: string,
  work: (client: pg.ClientBase) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let result: T;
  try {
    await client.query(begin);
    result = await work(client);
    await client.query('commit');
  } catch (error) {
    // The connection may still be in the failed transaction, so it must not return to the pool.
    client.release(true);
    throw error;
  }
  client.release();
  return result;
}

/** Runs a transaction that commits durably, whatever the pool's default: keys and passwords must survive a server crash. */
export const withSynchronousCommit = <T>(
  pool: pg.Pool,
  work: (client: pg.ClientBase) => Promise<T>,
): Promise<T> => inTransaction(pool, 'begin; set local synchronous_commit to on', work);

/** Runs one statement in a durable transaction. */
export const queryWithSynchronousCommit = (pool: pg.Pool, text: string, values: unknown[]): Promise<void> =>
  withSynchronousCommit(pool, async (client) => {
    await client.query(text, values);
  });

/**
 * A table expression of one row that makes the single statement reading it commit durably. For rows that a processor writes
 * about an event: its checkpoint in memory survives a server crash, which would lose rows that are not durable.
 */
export const SYNCHRONOUS_COMMIT = "set_config('synchronous_commit', 'on', true)";

const ROWS = 2_000;

/**
 * Repeats a deletion of rows at `$1` or before (a day `YYYY-MM-DD`, a position or an instant), at most `$2` rows each time,
 * until none is left. The text finds the rows as `key = any (array(select …))`: for `key in (select …)` the planner may read
 * the whole table.
 */
export async function forgetInBatches(db: pg.Pool, text: string, before: string | Date): Promise<void> {
  for (let deleted = ROWS; deleted === ROWS; ) {
    deleted = (await db.query(text, [before, ROWS])).rowCount ?? 0;
  }
}

/**
 * Repeats a statement for one page of a table after another: the page begins behind the key `$1`, other values follow, and the
 * statement returns the page's last key as `last`, or nothing where no page is left.
 */
export async function inPages(
  db: pg.Pool,
  statement: { readonly name: string; readonly text: string },
  first: string,
  ...values: readonly unknown[]
): Promise<void> {
  for (let after: string | undefined = first; after !== undefined; ) {
    const { rows }: pg.QueryResult<{ last: string }> = await db.query({
      ...statement,
      values: [after, ...values],
    });
    after = rows[0]?.last;
  }
}

/** Another process holds the lock. */
export class AnotherRuns extends Error {}

/**
 * Runs work in one process at a time. The lock is of an empty table (`work.only_one_…`), which logins without rights on it
 * cannot take; it needs no transaction id, so a long run does not hold back vacuum.
 * @throws AnotherRuns at once if another process holds the lock
 */
export async function exclusiveJob<T>(
  url: string,
  name: 'rebuild' | 'rotation' | 'erasure',
  work: () => Promise<T>,
): Promise<T> {
  const db = await openClient(url, `doorplate only one ${name}`);
  try {
    // A timeout configured on the server would release the lock while the work continues.
    await db.query('set idle_in_transaction_session_timeout = 0');
    await db.query('begin');
    await db.query(`lock table work.only_one_${name} in exclusive mode nowait`).catch((cause: unknown) => {
      const isHeld = (cause as { code?: string }).code === '55P03';
      throw isHeld ? new AnotherRuns(`another ${name} is running`, { cause }) : cause;
    });
    return await work();
  } finally {
    await db.end();
  }
}
