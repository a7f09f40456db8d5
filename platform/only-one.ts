import pg from 'pg';
import { OWN_SETTINGS, withSettings } from './open-pool.ts';

/** Another process holds the lock. */
export class AnotherRuns extends Error {}

/**
 * Runs work in one process at a time. The lock is of an empty table (`work.only_one_…`), which logins without rights on it
 * cannot take; it needs no transaction id, so a long run does not hold back vacuum.
 * @throws AnotherRuns at once if another process holds the lock
 */
export const onlyOne = async <T>(
  url: string,
  name: 'rebuild' | 'rotation',
  work: () => Promise<T>,
): Promise<T> => {
  const db = new pg.Client({
    connectionString: withSettings(url, OWN_SETTINGS),
    application_name: `doorplate only one ${name}`,
  });
  db.on('error', () => undefined);
  await db.connect();
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
};
