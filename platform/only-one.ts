import pg from 'pg';

/** Another process is at it. */
export class AnotherRuns extends Error {}

/**
 * Does work in one process of all at a time. The lock is one of an empty table (`work.only_one_…`), which a login without
 * rights on it cannot take; it needs no transaction id, so a long one keeps no vacuum back.
 * @throws AnotherRuns at once where another process holds the lock
 */
export const onlyOne = async <T>(
  url: string,
  name: 'rebuild' | 'rotation',
  work: () => Promise<T>,
): Promise<T> => {
  const db = new pg.Client({ connectionString: url, application_name: `doorplate only one ${name}` });
  db.on('error', () => undefined);
  await db.connect();
  try {
    // A time-out of the server's own would give the lock to another process while the work goes on.
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
};
