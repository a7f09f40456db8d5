import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Runtime } from '../../bin/runtime.ts';
import { readRecent } from '../../queries/sessions/sessions.ts';
import { type Plan, planOf, rowsRead } from '../support/rows-read.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

it("the query of recent sessions reads only sessions of the partner's own trackers", async () => {
  const { pool } = stack;
  const [owner, otherPartner, tracker] = [randomUUID(), randomUUID(), randomUUID()];
  const now = stack.clock.now();
  await pool.query(
    `insert into read.tracker (tracker_id, partner_id, name, origins, created_at)
     values ($1, $2, 'a tracker', '{https://a.example}', $3)`,
    [tracker, owner, new Date(now)],
  );
  for (const [partner, of, first] of [
    [owner, tracker, 1],
    [otherPartner, randomUUID(), 2_001],
  ]) {
    await pool.query(
      `insert into read.session (session_id, stream, tracker_id, partner_id, sealed, first_seen_at, last_seen_at,
                                 expires_at, position, last_revision, last_position)
       select gen_random_uuid(), 'tab-' || n, $1, $2, '', $3, $3, $4, n, 0, n
       from generate_series($5::int, $5::int + 999) n`,
      [of, partner, new Date(now), new Date(now + 60_000), first],
    );
  }
  await pool.query('analyze read.session');
  const planFor = async (partnerId: string): Promise<Plan> => {
    let asked = { sql: '', values: [] as readonly unknown[] };
    const any = async (query: typeof asked) => {
      asked = query;
      return [];
    };
    const db = { any } as unknown as Runtime['db'];
    await readRecent(db, { partnerId, trackerId: tracker, before: null, limit: 51, now });
    return planOf(pool, asked.sql.replaceAll('$slonik_', '$'), [...asked.values]);
  };
  expect(rowsRead(await planFor(otherPartner), 'session')).toBe(0);
  expect(rowsRead(await planFor(owner), 'session')).toBe(51);
});
