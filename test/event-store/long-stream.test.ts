import { afterAll, beforeAll, expect, it } from 'vitest';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { eventually } from '../support/eventually.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const STREAM = 'long-1';
const EVENTS = 20_000;

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

/** The number of log rows read so far by all connections. PostgreSQL's statistics lag by moments. */
const rowsRead = async (): Promise<number> => {
  const { rows } = await stack.pool.query(
    `select seq_tup_read + idx_tup_fetch as n from pg_stat_user_tables where relid = 'eventlog.event'::regclass`,
  );
  return Number(rows[0].n);
};

const fill = (from: number, to: number) =>
  stack.pool.query(
    `with head as (
       insert into eventlog.stream (name, revision) values ($1, $3)
       on conflict (name) do update set revision = excluded.revision)
     insert into eventlog.event (stream, revision, id, type, data, metadata)
     select $1, n, gen_random_uuid(), 'test.Happened.v1', '{}', '{}' from generate_series($2::int, $3::int) n`,
    [STREAM, from, to],
  );

it('reads the end of a long stream without reading the rest', async () => {
  const store = createPostgresEventStore({ url: stack.url, now: () => 0 });
  const readEnd = async (): Promise<number | undefined> => {
    for await (const { revision } of store.readStream(STREAM, { direction: 'backwards', limit: 1 }))
      return revision;
    return undefined;
  };
  await stack.pool.query(
    `with s as (
       insert into eventlog.stream (name, revision) select 'short-' || n, 0 from generate_series(1, 3000) n returning name)
     insert into eventlog.event (stream, revision, id, type, data, metadata)
     select name, 0, gen_random_uuid(), 'test.Happened.v1', '{}', '{}' from s`,
  );
  await fill(0, 0);
  // PostgreSQL keeps the plan that it has made by then.
  for (let n = 0; n < 8; n += 1) expect(await readEnd()).toBe(0);
  await fill(1, EVENTS - 1);
  const before = await rowsRead();
  let reads = 0;
  const readAndCount = async (): Promise<number> => {
    reads += 1;
    expect(await readEnd()).toBe(EVENTS - 1);
    return rowsRead();
  };
  const after = await eventually('the reads are counted', readAndCount, (n) => n > before, 20_000);
  expect((after - before) / reads).toBeLessThan(100);
  await store.close();
});
