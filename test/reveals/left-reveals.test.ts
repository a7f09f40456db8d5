import { randomUUID } from 'node:crypto';
import { v7 as uuid } from 'uuid';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { toNewEvents } from '../../commands/handle.ts';
import { requestForReveal } from '../../commands/lookup/request-for-reveal.ts';
import type { WorkCapacity } from '../../commands/lookup/submit-lookup.ts';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import { revealEvents } from '../../domain/reveals/events.ts';
import { retryRefusedReveals } from '../../processors/lookup/enrich-reveals.ts';
import { createRevealShare } from '../../processors/lookup/reveal-share.ts';
import { reveals } from '../../projections/reveals/reveals.ts';
import { explaining } from '../support/rows-read.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

afterEach(() => stack.pool.query('delete from work.awaited_result'));

const leave = async (partnerId: string, count: number, expiresIn = 60_000): Promise<void> => {
  const ids = Array.from({ length: count }, () => uuid());
  await stack.pool.query(
    `insert into work.awaited_result (reveal_id, session_id, partner_id, address_digest, asked, expires_at)
     select id, gen_random_uuid(), $2, 'digest', false, $3 from unnest($1::uuid[]) id`,
    [ids, partnerId, new Date(stack.clock.now() + expiresIn)],
  );
};

it('the reveal sweep requests enrichments of the partners round-robin while the intake is full', async () => {
  const [anna, ben, cleo] = [randomUUID(), randomUUID(), randomUUID()];
  await leave(anna, 150);
  await leave(ben, 2);
  await leave(cleo, 1);
  const asked: string[] = [];
  const asking = (room: number) => {
    let left = room;
    return retryRefusedReveals({
      pool: stack.pool,
      clock: stack.clock,
      addressOf: async (partnerId) => {
        if (left > 0) asked.push(partnerId);
        return '8.8.8.8';
      },
      request: async () => left-- > 0,
    });
  };
  await asking(5);
  expect(asked.slice(0, 3).sort()).toEqual([anna, ben, cleo].sort());
  expect(asked.slice(3, 5).sort()).toEqual([anna, ben].sort());
  await asking(1_000);
  await asking(1_000);
  expect(asked.filter((partner) => partner === anna)).toHaveLength(150);
  expect(asked).toHaveLength(153);
});

it("the reveal sweep continues with other partners when one partner's share of the intake is full", async () => {
  const [anna, ben, cleo] = [randomUUID(), randomUUID(), randomUUID()];
  for (const partner of [anna, ben, cleo]) await leave(partner, 3);
  const asked: string[] = [];
  await retryRefusedReveals({
    pool: stack.pool,
    clock: stack.clock,
    addressOf: async () => '8.8.8.8',
    request: async (_ip, partnerId) => {
      asked.push(partnerId);
      return partnerId !== anna;
    },
  });
  const times = (partner: string) => asked.filter((one) => one === partner).length;
  expect([times(anna), times(ben), times(cleo)]).toEqual([1, 3, 3]);
});

it('the reveal sweep reads no reveals that have expired, and deletes 5,000 of them in a run', async () => {
  const anna = randomUUID();
  await leave(anna, 5_001, -1);
  await leave(anna, 1);
  await stack.rows('analyze work.awaited_result');
  const { pool, read } = explaining(stack.pool, 'left_reveals', 'awaited_result');
  const run = () =>
    retryRefusedReveals({
      pool,
      clock: stack.clock,
      addressOf: async () => '8.8.8.8',
      request: async () => false,
    });
  const kept = async () => (await stack.rows('select from work.awaited_result')).length;
  await run();
  expect(await kept()).toBe(2);
  await run();
  expect(await kept()).toBe(1);
  expect(Math.max(...read), String(read)).toBeLessThan(10);
});

it('the reveal sweep keeps a reveal that a clock ahead took for expired and requests it after the correction', async () => {
  const partner = randomUUID();
  await leave(partner, 1);
  const [{ reveal_id } = { reveal_id: '' }] = (await stack.rows(
    'select reveal_id from work.awaited_result',
  )) as { reveal_id: string }[];
  await stack.project([reveals]);
  const { store } = stack;
  const session = { session_id: randomUUID(), tracker_id: randomUUID(), partner_id: partner };
  const times = { created_at: isoTime(stack.clock.now()), expires_at: isoTime(stack.clock.now() + 60_000) };
  const requested = {
    type: 'reveals.RevealRequested.v1',
    data: { reveal_id, ...session, key_id: 'key_a', user_id: null, ...times },
  };
  await store.append(
    `reveal-${reveal_id}`,
    'no_stream',
    toNewEvents(revealEvents, [requested], stack.context()),
  );
  await stack.caughtUp([reveals]);
  const asked: string[] = [];
  const ask = () =>
    retryRefusedReveals({
      pool: stack.pool,
      clock: stack.clock,
      addressOf: async (_partner, sessionId) => {
        asked.push(sessionId);
        return '8.8.8.8';
      },
      request: async () => true,
    });
  const right = stack.clock.now();
  stack.clock.advance(365 * DAY);
  await ask();
  expect(asked).toEqual([]);
  stack.clock.set(right);
  await ask();
  expect(asked).toHaveLength(1);
});

it('the reveal sweep gives each partner its own share of the intake', async () => {
  const askers: string[] = [];
  const capacity: WorkCapacity = {
    admit: async (_ip, asker) => {
      askers.push(asker);
      return { ok: false, retryAfterSeconds: 1 };
    },
  };
  const streams = { store: stack.store, digest: (ip: string) => ip, capacity, hasShare: async () => true };
  const context = { correlationId: 'c', causationId: 'c', at: stack.clock.now() };
  for (const partner of ['anna', 'ben']) {
    expect(await requestForReveal(streams, '8.8.8.8', partner, context)).toBe(false);
  }
  expect(new Set(askers).size).toBe(2);
});

it("asks for no more of a partner's reveals while 10,000 of them wait for results, and for those of others", async () => {
  const [anna, ben] = [randomUUID(), randomUUID()];
  await stack.pool.query(
    `insert into work.awaited_result (reveal_id, session_id, partner_id, address_digest, asked, expires_at)
     select gen_random_uuid(), gen_random_uuid(), $1, 'digest', true, $2 from generate_series(1, 9999)`,
    [anna, new Date(stack.clock.now() + 60_000)],
  );
  const capacity: WorkCapacity = { admit: async () => ({ ok: true, finished: () => {} }) };
  const { store } = stack;
  const intake = { store, digest: (ip: string) => ip, capacity, hasShare: createRevealShare(stack.pool) };
  const ask = (partner: string, ip: string) => requestForReveal(intake, ip, partner, stack.context());
  expect(await ask(anna, '9.9.9.1')).toBe(true);
  expect(await ask(anna, '9.9.9.2')).toBe(false);
  // An enrichment that is under way costs nothing.
  expect(await ask(anna, '9.9.9.1')).toBe(true);
  expect(await ask(ben, '9.9.9.2')).toBe(true);
});
