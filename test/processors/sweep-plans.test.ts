import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expiringReveals } from '../../processors/reveals/expiring-reveals.ts';
import { expiringSessions } from '../../processors/sessions/expire-sessions.ts';
import { expiringPayloads } from '../../processors/webhooks/expire-deliveries.ts';
import { rowsReadSoFar } from '../support/rows-read.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const EXPIRED = new Date('2026-03-31T12:00:00.000Z');
const PARTNER = randomUUID();
const ROWS = 20_000;

/** Adds rows of partner `$1` that expired at one instant, and as many of others that expire a day later. */
const rowsOf = (columns: string, values: string): string => `
  (${columns}, partner_id, expires_at, last_revision, last_position)
  select ${values}, case when n % 2 = 0 then $1::uuid else gen_random_uuid() end,
         $2::timestamptz + n % 2 * interval '1 day', 0, 0
  from generate_series(1, ${2 * ROWS}) n`;

const KINDS = [
  [
    expiringSessions,
    rowsOf(
      'session_id, tracker_id, sealed, first_seen_at, last_seen_at, position, stream',
      `gen_random_uuid(), $1, 's', '2026-03-01', '2026-03-01', n, 'tab-' || n`,
    ),
  ],
  [
    expiringReveals,
    rowsOf(
      'reveal_id, session_id, tracker_id, created_at',
      `gen_random_uuid(), gen_random_uuid(), $1, '2026-03-01'`,
    ),
  ],
  [
    expiringPayloads,
    rowsOf(
      'event_id, type, day, sealed, bytes, created_at',
      `'evt' || n, 't', '2026-03-01', '', 0, '2026-03-01'`,
    ),
  ],
] as const;

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

it.each(KINDS.map(([kind, insert]) => [kind.name, kind, insert] as const))(
  'reads the %s of a batch alone',
  async (_name, kind, insert) => {
    const client = await stack.pool.connect();
    const read = () => rowsReadSoFar(client, kind.table);
    const due = async () => {
      const values = [EXPIRED, '9000000000000000000', '2100-01-01', '-infinity', kind.firstId];
      return (await client.query({ name: 'due', text: kind.due, values })).rows.length;
    };
    await client.query('set plan_cache_mode = force_generic_plan');
    await client.query(`insert into ${kind.table} ${insert}`, [PARTNER, EXPIRED]);
    await client.query(`analyze ${kind.table}`);
    await client.query('begin');
    const before = await read();
    expect(await due()).toBe(500);
    // A session is read with the newest of its tab.
    expect((await read()) - before).toBeLessThan(5 * 500);
    await client.query('rollback');
    await client.query('deallocate all');
    client.release(true);
  },
);
