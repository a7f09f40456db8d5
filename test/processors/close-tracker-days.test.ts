import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TrackerHour, trackerDayStream } from '../../domain/usage/events.ts';
import { closeTrackerDays } from '../../processors/usage/close-usage-streams.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const TRACKERS = 300;

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

/** The pool, and the most rows that a statement has returned. */
const countingRows = (pool: pg.Pool) => {
  let most = 0;
  const query = async (text: string, values: unknown[]) => {
    const result = await pool.query(text, values);
    most = Math.max(most, result.rows.length);
    return result;
  };
  return { pool: { query } as unknown as pg.Pool, most: () => most };
};

it('records each count of a day once, in order, and reads at once what an event holds', async () => {
  await stack.rows(
    `insert into read.tracker_hour (tracker_id, hour, sessions, reveals)
     select tracker, hour, n, extract(hour from hour)
     from (select gen_random_uuid() tracker, n from generate_series(1, $1) n) t,
          generate_series('2026-02-28T00:00Z'::timestamptz, '2026-02-28T23:00Z', '1 hour') hour`,
    [TRACKERS],
  );
  const counting = countingRows(stack.pool);
  await closeTrackerDays({ ...stack, pool: counting.pool, waitForHead: async () => true });
  const counts: TrackerHour[] = [];
  for await (const { data } of stack.store.readStream(trackerDayStream('2026-02-28'))) {
    counts.push(...(data as { counts: TrackerHour[] }).counts);
  }
  const kept = await stack.rows(
    'select tracker_id, hour, sessions, reveals from read.tracker_hour order by 1, 2',
  );
  expect(counts).toEqual(
    kept.map(({ tracker_id, hour, sessions, reveals }) => [
      tracker_id,
      (hour as Date).toISOString().slice(0, 13),
      Number(sessions),
      Number(reveals),
    ]),
  );
  expect(counting.most()).toBeLessThanOrEqual(5_000);
});
