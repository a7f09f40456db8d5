import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { AnotherRuns, exclusiveJob } from '../../platform/postgres/transactions.ts';
import { testDatabase } from '../support/database.ts';

it("the lock is held for as long as the work takes, whatever the server's limit for idle transactions", async () => {
  const database = await testDatabase();
  onTestFinished(database.drop);
  const url = new URL(database.url);
  url.searchParams.set('options', '-c idle_in_transaction_session_timeout=50');
  const other = new pg.Client({ connectionString: database.url });
  await other.connect();
  onTestFinished(() => other.end());
  await exclusiveJob(url.href, 'rebuild', async () => {
    // Ten times as long as an idle transaction may live.
    await other.query('select pg_sleep(0.5)');
    await expect(exclusiveJob(url.href, 'rebuild', async () => undefined)).rejects.toThrow(AnotherRuns);
  });
});
