import { randomUUID } from 'node:crypto';
import { NIL } from 'uuid';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { firstTurns, loadTurns, turnValues } from '../../processors/partner-turns.ts';
import { expiringReveals } from '../../processors/reveals/expiring-reveals.ts';
import { expiringSessions } from '../../processors/sessions/expiring-sessions.ts';
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
  'reads the %s of a batch alone, also by plans that were made while the table was empty',
  async (_name, kind, insert) => {
    const client = await stack.pool.connect();
    const read = () => rowsReadSoFar(client, kind.table);
    const batch = { turns: firstTurns([PARTNER, NIL]), share: 250 };
    const due = async () => {
      const values = [EXPIRED, '9000000000000000000', '2100-01-01', ...turnValues(batch)];
      return (await client.query({ name: 'due', text: kind.due, values })).rows.length;
    };
    await client.query('set plan_cache_mode = force_generic_plan');
    expect(await loadTurns(client, kind.table, EXPIRED.getTime())).toEqual([]);
    expect(await due()).toBe(0);
    await client.query(`insert into ${kind.table} ${insert}`, [PARTNER, EXPIRED]);
    await client.query('begin');
    const before = await read();
    expect(await loadTurns(client, kind.table, EXPIRED.getTime())).toEqual(firstTurns([PARTNER]));
    const partners = ROWS + 1;
    expect((await read()) - before).toBeLessThan(partners + 10);
    expect(await due()).toBe(250);
    // A session is read with the newest of its tab.
    expect((await read()) - before).toBeLessThan(partners + 5 * 250);
    await client.query('rollback');
    await client.query('deallocate all');
    client.release(true);
  },
);

it.each(KINDS.map(([kind, insert]) => [kind.name, kind, insert] as const))(
  "reads none of a partner's %s for another partner, where PostgreSQL knows of one partner alone",
  async (_name, kind, insert) => {
    const client = await stack.pool.connect();
    await client.query('set enable_seqscan = off');
    await client.query(`delete from ${kind.table}`);
    await client.query(`insert into ${kind.table} ${insert}`, [PARTNER, EXPIRED]);
    await client.query(`update ${kind.table} set partner_id = $1, expires_at = $2`, [PARTNER, EXPIRED]);
    await client.query(`vacuum ${kind.table}`);
    await client.query(`analyze ${kind.table}`);
    const values = [
      new Date(EXPIRED.getTime() + 2 * DAY),
      '9000000000000000000',
      '2100-01-01',
      ...turnValues({ turns: firstTurns([NIL]), share: 250 }),
    ];
    const read: number[] = [];
    for (const mode of ['force_generic_plan', 'force_custom_plan']) {
      await client.query(`set plan_cache_mode = ${mode}; begin`);
      const before = await rowsReadSoFar(client, kind.table);
      await client.query({ name: `due ${mode}`, text: kind.due, values });
      read.push((await rowsReadSoFar(client, kind.table)) - before);
      await client.query('rollback');
    }
    client.release(true);
    expect(read).toEqual([0, 0]);
  },
);
