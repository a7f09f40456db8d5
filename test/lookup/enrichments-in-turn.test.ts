import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { claimDue } from '../../processors/claims.ts';
import { DUE_ENRICHMENTS } from '../../processors/lookup/attempt-enrichments.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());
beforeEach(() => stack.pool.query('truncate read.enrichment_work, work.claim'));

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
