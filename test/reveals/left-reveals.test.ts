import { randomUUID } from 'node:crypto';
import { v7 as uuid } from 'uuid';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { toNewEvents } from '../../commands/handle.ts';
import { requestForReveal } from '../../commands/lookup/reveal-lookups.ts';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import { revealEvents } from '../../domain/reveals/events.ts';
import { hasRoomForReveal, retryRefusedReveals } from '../../processors/lookup/enrich-reveals.ts';
import { reveals } from '../../projections/reveals/reveals.ts';
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

/** Sweeps with an intake that has room. @returns the partners whose reveals were requested, in order */
const sweep = async (): Promise<string[]> => {
  const requested: string[] = [];
  await retryRefusedReveals({
    pool: stack.pool,
    clock: stack.clock,
    addressOf: async () => '8.8.8.8',
    request: async (_ip, partnerId) => requested.push(partnerId) > 0,
  });
  return requested;
};
const markRequested = (partnerId: string) =>
  stack.rows('update work.awaited_result set asked = true where partner_id = $1', [partnerId]);

it('the reveal sweep requests the enrichments of reveals that expire first', async () => {
  const [anna, ben] = [randomUUID(), randomUUID()];
  await leave(anna, 150, 60_000);
  await leave(ben, 2, 30_000);
  const first = await sweep();
  expect(first.slice(0, 2)).toEqual([ben, ben]);
  expect(first).toHaveLength(100);
  expect(await sweep()).toEqual(Array(52).fill(anna));
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

it("requests no enrichment beyond a partner's 1,000 that are unfinished", async () => {
  const [anna, ben] = [randomUUID(), randomUUID()];
  await leave(anna, 999);
  await markRequested(anna);
  const purposes: string[] = [];
  const intake = {
    store: stack.store,
    digest: (ip: string) => ip,
    capacity: {
      admit: async (_ip: string, purpose: string) => {
        purposes.push(purpose);
        return { ok: true, finished: () => {} } as const;
      },
    },
    hasRoom: (partner: string) => hasRoomForReveal(stack.pool, partner),
  };
  const request = (partner: string, ip: string) => requestForReveal(intake, ip, partner, stack.context());
  expect(await request(anna, '9.9.9.1')).toBe(true);
  await leave(anna, 1);
  await markRequested(anna);
  expect(await request(anna, '9.9.9.2')).toBe(false);
  // An enrichment that is under way costs nothing.
  expect(await request(anna, '9.9.9.1')).toBe(true);
  expect(await request(ben, '9.9.9.2')).toBe(true);
  expect(purposes).toEqual(['reveal', 'reveal']);
});
