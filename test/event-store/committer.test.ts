import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { StoreUnavailable } from '../../event-store/port.ts';
import { createCommitter } from '../../event-store/postgres/committer.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';

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
