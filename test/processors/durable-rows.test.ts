import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DOMAIN_PREFIX } from '../../domain/domains/events.ts';
import type { Position, RecordedEvent } from '../../event-store/port.ts';
import { keepDomains } from '../../processors/domains/keep-domains.ts';
import { enrichReveals } from '../../processors/lookup/enrich-reveals.ts';
import { completeRevealsOf } from '../../processors/reveals/complete-reveals.ts';
import { completedReveal, revealAppend, revealStream } from '../support/reveals.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

/**
 * A processor's checkpoint advances in memory when PostgreSQL crashes. A row that it wrote about an event must
 * survive that crash, because no later run writes it again.
 */
let stack: TestStack;
let pool: pg.Pool;
beforeAll(async () => {
  stack = await startTestStack();
  // Configured like the service's own pool.
  pool = new pg.Pool({ connectionString: stack.url, max: 2, options: '-c synchronous_commit=off' });
  await pool.query('create table public.committed (relation text, durability text)');
  await pool.query(`
    create function public.note_commit() returns trigger language plpgsql as $$
    begin
      insert into public.committed values (tg_table_name, current_setting('synchronous_commit'));
      return null;
    end $$`);
  for (const table of ['awaited_result', 'domain_look'])
    await pool.query(`
      create constraint trigger note_commit after insert or update on work.${table}
      deferrable initially deferred for each row execute function public.note_commit()`);
});
afterAll(async () => {
  await pool.end();
  await stack.close();
});

const commits = async () => (await pool.query('delete from public.committed returning *')).rows;

const reveal = completedReveal({ partner_id: randomUUID() });
const waiting = {
  digest: () => 'a-digest',
  addressOf: async () => '8.8.8.8',
  request: async () => true,
  onAwaited: async () => undefined,
};

it('a reveal that waits for its result is written with synchronous commit', async () => {
  const [requested] = revealAppend(reveal);
  const stored = {
    ...requested,
    stream: revealStream(reveal.reveal_id),
    revision: 0,
    position: 1n as Position,
  } as RecordedEvent;
  await enrichReveals({ pool, clock: stack.clock, ...waiting }).handle(stored);
  expect(await commits()).toEqual([{ relation: 'awaited_result', durability: 'on' }]);
});

it('a reveal whose result has arrived is marked with synchronous commit', async () => {
  const parts = {
    pool,
    clock: stack.clock,
    applied: async () => true,
    complete: async () => true,
  };
  await completeRevealsOf(parts, 'a-digest');
  expect(await commits()).toEqual([{ relation: 'awaited_result', durability: 'on' }]);
});

it('the first check of a claimed domain is scheduled with synchronous commit', async () => {
  const hostname = 'visits.example.com';
  const data = { domain_id: randomUUID(), hostname, tracker_id: randomUUID(), partner_id: randomUUID() };
  const at = new Date(stack.clock.now()).toISOString();
  const stored: RecordedEvent = {
    id: randomUUID(),
    type: 'domains.DomainClaimed.v1',
    data: { ...data, claimed_at: at },
    metadata: { $correlationId: 'c', $causationId: 'c', at },
    stream: `${DOMAIN_PREFIX}${hostname}`,
    revision: 0,
    position: 1n as Position,
  };
  await keepDomains({ store: stack.store, pool, clock: stack.clock }).handle(stored);
  expect(await commits()).toEqual([{ relation: 'domain_look', durability: 'on' }]);
});
