import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EventStore } from '../../event-store/port.ts';
import { truncateStream } from '../../event-store/postgres/delete-events.ts';
import type { Query } from '../../event-store/postgres/pages.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { eventually } from '../support/eventually.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { until } from '../support/until.ts';

const STREAM = 'long-1';
const EVENTS = 20_000;

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

const events = (count: number) =>
  Array.from({ length: count }, () => ({
    id: randomUUID(),
    type: 'test.Happened.v1',
    data: {},
    metadata: { $correlationId: 'c', $causationId: 'c', at: '2030-01-02T03:04:05.678Z' },
  }));

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

describe('the row of a long stream', () => {
  const LONG = 'long-2';
  let store: EventStore;
  beforeAll(async () => {
    store = createPostgresEventStore({ url: stack.url, now: () => 0 });
    for (let from = 0; from < 1_200; from += 400)
      await store.append(LONG, from === 0 ? 'no_stream' : from - 1, events(400));
  });
  afterAll(() => store.close());
  const versionOf = async (name: string) =>
    (await stack.rows('select ctid from eventlog.stream where name = $1', [name]))[0]?.ctid;

  it('is not written by each append: while a transaction is open, all its versions would be read by the next one', async () => {
    const before = await versionOf(LONG);
    for (let at = 1_199; at < 1_249; at += 1) await store.append(LONG, at, events(1));
    expect(await versionOf(LONG)).toBe(before);
  });

  it('is not behind events that are appended while all before them are deleted', async () => {
    const stream = 'long-3';
    for (let from = 0; from < 1_200; from += 400) {
      await store.append(stream, from === 0 ? 'no_stream' : from - 1, events(400));
    }
    const query: Query = async (_name, text, values) => {
      const { rows } = await stack.pool.query(text, values);
      // Between the two statements of a truncation.
      if (text.includes('returning truncated_before')) await store.append(stream, 1_199, events(1));
      return rows;
    };
    await truncateStream(query, stream, 5_000);
    expect(await stack.rows('select revision from eventlog.event where stream = $1', [stream])).toEqual([
      { revision: 1_200 },
    ]);
    expect(await store.append(stream, 1_200, events(1))).toMatchObject({ revision: 1_201 });
  });

  it('is not deleted when an append is committed while the deletion waits for it', async () => {
    const writer = await stack.session('begin');
    await writer.query(
      `select outcome from eventlog.append_batch($1, array[1249], array[1], array[gen_random_uuid()],
         array['test.Happened.v1'], array['{}'::json], array['{}'::json])`,
      [[LONG]],
    );
    const expiring = store.expire(LONG, 1_249).catch((error: unknown) => error);
    await until('the deletion waits', async () => {
      const waiting = await stack.rows(`select from pg_stat_activity where wait_event_type = 'Lock'`);
      return waiting.length === 1;
    });
    await writer.query('commit');
    expect(await expiring).toMatchObject({ actual: 1_250 });
    expect(await store.append(LONG, 1_250, events(1))).toMatchObject({ revision: 1_251 });
  });
});
