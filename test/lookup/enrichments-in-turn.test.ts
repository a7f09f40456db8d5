import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { handleEnrichment } from '../../commands/lookup/generations.ts';
import { requestForReveal } from '../../commands/lookup/request-for-reveal.ts';
import { enrichmentStream } from '../../domain/lookup/events.ts';
import { claimDue } from '../../processors/claims.ts';
import { DUE_ENRICHMENTS } from '../../processors/lookup/due-enrichments.ts';
import { lookups } from '../../projections/lookup/lookups.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { result as savedResult } from './lookup-events.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([lookups]);
});
afterAll(() => stack.close());
beforeEach(() => stack.pool.query('truncate read.enrichment_work, read.enrichment_asker, work.claim'));

/** Due enrichments of addresses under the network prefix. */
const ask = (askedBy: string, network: string, count: number, sinceMs: number) =>
  stack.pool.query(
    `insert into read.enrichment_work (ip, round, kind, requested_at, attempts, next_attempt_at, asked_by)
     select $2 || n, 1, 'first', $4, 0, $4::timestamptz + n * interval '1 millisecond', $1
     from generate_series(1, $3::int) n`,
    [askedBy, network, count, new Date(stack.clock.now() - sinceMs)],
  );
const claimed = async (limit: number): Promise<string[]> => {
  const { claims } = await claimDue(stack.pool, DUE_ENRICHMENTS, {
    now: stack.clock.now(),
    leaseMs: 60_000,
    limit,
  });
  return claims.map(({ item }) => item);
};

it('claims the enrichments of the partners round-robin and of each partner the earliest first', async () => {
  await ask(randomUUID(), '1.0.0.', 200, 60_000);
  await ask(randomUUID(), '2.0.0.', 3, 1_000);
  expect((await claimed(6)).sort()).toEqual([
    '1.0.0.1',
    '1.0.0.2',
    '1.0.0.3',
    '2.0.0.1',
    '2.0.0.2',
    '2.0.0.3',
  ]);
  expect((await claimed(2)).sort()).toEqual(['1.0.0.4', '1.0.0.5']);
});

it("claims a partner's enrichment beside another partner's backlog, also one at a time", async () => {
  await ask(randomUUID(), '1.0.0.', 200, 60_000);
  await ask(randomUUID(), '2.0.0.', 1, 1_000);
  const taken: string[] = [];
  for (let nth = 0; nth < 40; nth += 1) taken.push(...(await claimed(1)));
  expect(taken).toHaveLength(40);
  // Ordered by time it would be the last of 201. A random order misses it among 40 once in 10^12 runs.
  expect(taken).toContain('2.0.0.1');
});

it('claims the enrichments that reveals asked for in turns of their partners, whom no event names', async () => {
  const [anna, ben] = [randomUUID(), randomUUID()];
  const { store } = stack;
  const intake = {
    store,
    digest: (text: string) => `digest of ${text}`,
    capacity: { admit: async () => ({ ok: true, finished: () => undefined }) as const },
    hasShare: async () => true,
  };
  const reveal = (partner: string, ip: string) => requestForReveal(intake, ip, partner, stack.context());
  for (let n = 1; n <= 20; n += 1) await reveal(anna, `1.0.0.${n}`);
  stack.clock.advance(1_000);
  for (const n of [1, 2]) await reveal(ben, `2.0.0.${n}`);
  await stack.caughtUp([lookups]);
  expect((await claimed(4)).filter((ip) => ip.startsWith('2.'))).toHaveLength(2);
  for (const ip of ['1.0.0.1', '2.0.0.1']) {
    const events = JSON.stringify(
      await Array.fromAsync(store.readStream(enrichmentStream(intake.digest(ip))), ({ data }) => data),
    );
    expect(events).toContain(ip);
    for (const partner of [anna, ben]) expect(events).not.toContain(partner);
  }
});

it('claims work for which two partners wait in the turn of each, until it ends', async () => {
  const { store, pool, clock } = stack;
  const streams = { store, digest: (text: string) => `digest of ${text}` };
  const submit = (partner_id: string, ip: string) => {
    const submitted_at = new Date(clock.now()).toISOString();
    const reservation = { reservation_id: randomUUID(), partner_id, key_id: 'key_1', submitted_at };
    const command = { type: 'Submit', ip, reservation, configured: [], at: clock.now() } as const;
    return handleEnrichment(streams, ip, command, stack.context());
  };
  const askers = async () => (await pool.query('select ip, next_attempt_at from read.enrichment_asker')).rows;
  const backlog = Array.from({ length: 200 }, (_, n) => `3.0.0.${n + 1}`);
  const [anna, ben, cleo] = [randomUUID(), randomUUID(), randomUUID()];
  for (const ip of backlog) await submit(anna, ip);
  clock.advance(1_000);
  await submit(ben, '3.0.0.150');
  await submit(ben, '3.0.0.151');
  await requestForReveal(
    {
      ...streams,
      capacity: { admit: async () => ({ ok: false, position: null }) as never },
      hasShare: async () => false,
    },
    '3.0.0.152',
    cleo,
    stack.context(),
  );
  await stack.caughtUp([lookups]);
  const taken = await claimed(6);
  expect(taken).toHaveLength(6);
  expect(taken).toEqual(expect.arrayContaining(['3.0.0.150', '3.0.0.151', '3.0.0.152']));
  const failing = {
    type: 'Fail',
    round: 1,
    attempt: 1,
    failures: [],
    answered: [],
    jitter: 0.5,
    baseMs: 15_000,
  } as const;
  await handleEnrichment(streams, '3.0.0.151', { ...failing, at: clock.now() }, stack.context());
  const result = savedResult({ ip: '3.0.0.150' });
  const complete = { type: 'Complete', round: 1, attempt: 1, result } as const;
  await handleEnrichment(streams, '3.0.0.150', complete, stack.context());
  await stack.caughtUp([lookups]);
  const left = await askers();
  expect(left.map(({ ip }) => ip).sort()).toEqual(['3.0.0.151', '3.0.0.152']);
  const { next_attempt_at } = left.find(({ ip }) => ip === '3.0.0.151');
  expect(next_attempt_at.getTime()).toBeGreaterThan(clock.now() + 10_000);
  const stale = savedResult({ ip: '3.0.0.151', fresh_until: new Date(clock.now()).toISOString() });
  await handleEnrichment(streams, '3.0.0.151', { ...complete, attempt: 2, result: stale }, stack.context());
  await submit(anna, '3.0.0.151');
  await stack.caughtUp([lookups]);
  const { rows: rounds } = await pool.query(`select round from read.enrichment_work where ip = '3.0.0.151'`);
  expect(rounds).toEqual([{ round: 2 }]);
  expect(await askers()).toMatchObject([{ ip: '3.0.0.152' }]);
});
