import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RateLimiter } from '../../platform/rate-limit.ts';
import { createDashboardLogins } from '../../processors/partners/dashboard-logins.ts';
import { createLoginNetworks } from '../../processors/partners/login-networks.ts';
import { createLogins } from '../../processors/partners/logins.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

it('a visitor with many networks within one stores few counts, and does not lock out users who are known there', async () => {
  const counts = new Map<string, number>();
  const admit: RateLimiter['admit'] = (name, ceiling) => {
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return count <= ceiling ? null : { retryMs: 1_000 };
  };
  const limiter = { admit } as RateLimiter;
  const logins = createDashboardLogins({ ...stack, limiter, logins: createLogins(stack) });
  const user = randomUUID();
  await createLoginNetworks(stack).remember(user, 'home');
  const tries: (number | null)[] = [];
  for (let nth = 0; nth < 1_100; nth += 1) {
    tries.push(await logins.admit(randomUUID(), { own: `network ${nth}`, wider: 'the /48' }));
  }
  expect(tries.filter((wait) => wait === null)).toHaveLength(1_000);
  expect(counts.size).toBeLessThanOrEqual(3_001);
  expect(await logins.admit(user, { own: 'home', wider: 'the /48' })).toBeNull();
});
