/** One visitor may begin hundreds of thousands of sessions in one tab: each with another address of its network. */
import { randomUUID } from 'node:crypto';
import { NIL } from 'uuid';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { expiringSessions } from '../../processors/sessions/expire-sessions.ts';
import { planOf, rowsRead } from '../support/rows-read.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const BEGUN = Date.parse('2026-03-01T12:00:00.000Z');
const PASSED = '9000000000000000000';
const PARTNER = randomUUID();
/** The first turn of the partner. */
const FIRST = ['-infinity', NIL];
const BATCH = 100;

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

/** Sessions of one tab, or of a tab each, one a second. */
const INSERT = `
  insert into read.session (session_id, partner_id, tracker_id, sealed, first_seen_at, last_seen_at, expires_at, position,
                            stream, last_revision, last_position)
  select gen_random_uuid(), $1, $1, 'sealed', at, at, at + interval '30 days', n, coalesce($2, 'tab-' || n), n, n
  from (select n, $3::timestamptz + n * interval '1 second' as at from generate_series(1, $4::int) n) visits`;
const begin = (tab: string | null, count: number) =>
  stack.pool.query(INSERT, [PARTNER, tab, new Date(BEGUN), count]);

/** Blocks that the insertion of so many sessions reads. */
const blocksOf = async (tab: string | null, count: number): Promise<number> => {
  const { rows } = await stack.pool.query(`explain (analyze, buffers, format json) ${INSERT}`, [
    PARTNER,
    tab,
    new Date(BEGUN),
    count,
  ]);
  const { Plan: plan } = rows[0]['QUERY PLAN'][0];
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
};

it('adds a session to a tab with ten thousand for what it costs in a tab of its own', async () => {
  await begin(null, 10_000);
  await begin('tab-one', 10_000);
  const own = await blocksOf(null, 100);
  expect(await blocksOf('tab-one', 100)).toBeLessThan(2 * own);
});

it('sweeps the expired sessions of a tab without reading its others once for each', async () => {
  await stack.pool.query('truncate read.session');
  await begin('tab-two', 1_000);
  const expired = [new Date(BEGUN + 30 * DAY + BATCH * 1_000), PASSED, '2100-01-01', ...FIRST];
  const { rows } = await stack.pool.query(expiringSessions.due, expired);
  expect(rows).toHaveLength(BATCH);
  for (const row of rows) expect(row).toMatchObject({ stream: 'tab-two', lives: true, ready: true });
  expect(rowsRead(await planOf(stack.pool, expiringSessions.due, expired), 'session')).toBeLessThan(5_000);
  const all = [new Date(BEGUN + 31 * DAY), PASSED, '2100-01-01', ...FIRST];
  const [first] = (await stack.pool.query(expiringSessions.due, all)).rows;
  expect(first).toMatchObject({ lives: false, ready: true, last_revision: 1_000 });
  expect(rowsRead(await planOf(stack.pool, expiringSessions.due, all), 'session')).toBeLessThan(5_000);
  const passed = [new Date(BEGUN + 31 * DAY), '900', '2100-01-01', ...FIRST];
  expect((await stack.pool.query(expiringSessions.due, passed)).rows[0]).toMatchObject({ ready: false });
});

it('sweeps an expired tab at the same cost, however many sessions it has', async () => {
  await stack.pool.query('truncate read.session');
  await begin(null, 10_000);
  await begin('tab-three', 20_000);
  await stack.pool.query('analyze read.session');
  const expired = [new Date(BEGUN + 31 * DAY), PASSED, '2100-01-01', ...FIRST];
  expect(rowsRead(await planOf(stack.pool, expiringSessions.due, expired), 'session')).toBeLessThan(5_000);
});

it('finds the last event of a tab whose oldest session was visited last', async () => {
  await stack.pool.query('truncate read.session');
  await begin('tab-four', 50);
  await stack.pool.query('update read.session set last_revision = 500 where position = 1');
  const expired = [new Date(BEGUN + 31 * DAY), PASSED, '2100-01-01', ...FIRST];
  const [first] = (await stack.pool.query(expiringSessions.due, expired)).rows;
  expect(first).toMatchObject({ lives: false, ready: true, last_revision: 500 });
});
