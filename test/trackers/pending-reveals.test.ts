import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { DatabasePool } from 'slonik';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import { countPending } from '../../read-api/trackers/tracker-usage.ts';
import { AT } from '../lookup/lookup-events.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let db: pg.Client;
beforeAll(async () => {
  stack = await startTestStack();
  // Vacuum marks no page as visible to all whose commits are not flushed yet.
  db = await stack.session('set synchronous_commit to on');
});
afterAll(() => stack.close());

const PENDING = 4_000;

it("counts a tracker's pending reveals without reading their rows", async () => {
  const tracker = randomUUID();
  await db.query(
    `insert into read.reveal
       (reveal_id, session_id, tracker_id, partner_id, created_at, expires_at, last_revision, last_position)
     select gen_random_uuid(), gen_random_uuid(), case n % 20 when 0 then $1 else gen_random_uuid() end, $1, $2, $3, 0, 0
     from generate_series(1, 20 * $4::int) n`,
    [tracker, isoTime(AT), isoTime(AT + DAY), PENDING],
  );
  await db.query('vacuum analyze read.reveal');
  let blocks = 0;
  const explained = {
    oneFirst: async (query: { sql: string; values: unknown[] }) => {
      const text = query.sql.replaceAll('$slonik_', '$');
      const explain = `explain (analyze, buffers, format json) ${text}`;
      const { Plan: plan } = (await db.query(explain, query.values)).rows[0]['QUERY PLAN'][0];
      blocks = plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
      return (await db.query(text, query.values)).rows[0].pending;
    },
  } as unknown as DatabasePool;
  expect(await countPending(explained, tracker, isoTime(AT))).toBe(PENDING);
  expect(blocks).toBeLessThan(PENDING / 40);
});
