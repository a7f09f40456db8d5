import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OutcomeUnknown, StoreUnavailable } from '../../event-store/port.ts';
import { createCommitter } from '../../event-store/postgres/committer.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const anEvent = (id: string) => ({ id, type: 'test.Happened.v1', data: '{}', metadata: '{}' });

it('an append that PostgreSQL refuses fails alone, and costs those beside it few commits', async () => {
  let commits = 0;
  const committer = createCommitter({
    url: database.url,
    deadlineMs: 4_000,
    committed: () => {
      commits += 1;
    },
  });
  const ids = Array.from({ length: 256 }, (_, nth) => (nth === 100 ? 'no id' : randomUUID()));
  const appends = await Promise.allSettled(
    ids.map((id, nth) => committer.append(`test-${nth}`, 'no_stream', [anEvent(id)])),
  );
  await committer.close();
  const failed = appends.flatMap((append, nth) =>
    append.status === 'rejected' ? [[nth, append.reason]] : [],
  );
  expect(failed).toEqual([[100, expect.any(StoreUnavailable)]]);
  expect(commits).toBeLessThanOrEqual(8);
});

it('an append that was given up while it waited is not written later', async () => {
  const other = new pg.Client(database.url);
  await other.connect();
  await other.query('begin; select eventlog.lock_writer()');
  const committer = createCommitter({ url: database.url, deadlineMs: 300, committed: () => undefined });
  await expect(committer.append('test-late', 'no_stream', [anEvent(randomUUID())])).rejects.toThrow(
    OutcomeUnknown,
  );
  const waiting =
    "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  await until('no session waits', async () => (await other.query(waiting)).rowCount === 0, 3_000);
  await other.query('commit');
  const { rows } = await other.query("select from eventlog.stream where name = 'test-late'");
  expect(rows).toEqual([]);
  await committer.close();
  await other.end();
});
