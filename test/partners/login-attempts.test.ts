import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY, MINUTE } from '../../domain/kernel/time.ts';
import { WorkRefused } from '../../platform/gate.ts';
import { createRateLimiter, type RateLimiter } from '../../platform/rate-limit.ts';
import { createDashboardLogins } from '../../processors/partners/dashboard-logins.ts';
import { createLoginNetworks } from '../../processors/partners/login-networks.ts';
import { createLogins } from '../../processors/partners/logins.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { until } from '../support/until.ts';

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

it('few attempts from networks that are new to their users spend rates at once, and others are refused before', async () => {
  const spending: (() => void)[] = [];
  const admit = () => new Promise<null>((resolve) => spending.push(() => resolve(null)));
  const limiter = { admit } as unknown as RateLimiter;
  const logins = createDashboardLogins({ ...stack, limiter, logins: createLogins(stack) });
  const [user, known] = [randomUUID(), { own: 'home', wider: 'around home' }];
  await createLoginNetworks(stack).remember(user, known.own);
  const tries = Array.from({ length: 100 }, (_, nth) =>
    logins.admit(randomUUID(), { own: `network ${nth}`, wider: `around ${nth}` }),
  );
  const refused = tries.map((one) => one.catch((error: unknown) => error));
  expect(await Promise.race(refused)).toBeInstanceOf(WorkRefused);
  expect(spending).toHaveLength(8);
  const mine = logins.admit(user, known);
  await until('a known one spends rates all the same', () => spending.length === 9);
  const ending = setInterval(() => {
    for (const end of spending.splice(0)) end();
  });
  expect(await mine).toBeNull();
  const outcomes = await Promise.all(refused);
  clearInterval(ending);
  expect(outcomes.filter((outcome) => outcome === null)).toHaveLength(72);
});

describe('attempts to log in', () => {
  const start = () => {
    const limiter = createRateLimiter({ ...stack, alone: () => true });
    return createDashboardLogins({ ...stack, limiter, logins: createLogins(stack) });
  };
  let logins: ReturnType<typeof start>;

  beforeAll(() => {
    logins = start();
  });
  // Past the window that attempts are counted in.
  beforeEach(() => stack.clock.advance(16 * MINUTE));

  const isAdmitted = async (user: string, own: string, wider = `around ${own}`): Promise<boolean> =>
    (await logins.admit(user, { own, wider })) === null;

  /** Makes so many attempts, by default from a network each. @returns how many were admitted */
  const admitted = async (
    attempts: number,
    user: (nth: number) => string,
    network: (nth: number) => string = () => randomUUID(),
  ): Promise<number> => {
    let count = 0;
    for (let nth = 0; nth < attempts; nth += 1) {
      if (await isAdmitted(user(nth), network(nth))) count += 1;
    }
    return count;
  };

  it('are limited by user and network until time has passed', async () => {
    const user = randomUUID();
    expect(
      await admitted(
        12,
        () => user,
        () => 'one network',
      ),
    ).toBe(10);
    expect(await isAdmitted(user, 'another network')).toBe(true);
    stack.clock.advance(16 * MINUTE);
    expect(await isAdmitted(user, 'one network')).toBe(true);
  });

  it('from elsewhere do not lock a user out where the user has logged in before', async () => {
    const user = randomUUID();
    await createLoginNetworks(stack).remember(user, 'home');
    expect(await admitted(60, () => user)).toBe(50);
    // Its own allowance is bounded all the same.
    expect(
      await admitted(
        12,
        () => user,
        () => 'home',
      ),
    ).toBe(10);
    stack.clock.advance(91 * DAY);
    await admitted(60, () => user);
    expect(await isAdmitted(user, 'home')).toBe(false);
  });

  it('are limited by network, and store no more names than they try', async () => {
    expect(
      await admitted(
        105,
        () => randomUUID(),
        () => 'a network',
      ),
    ).toBe(100);
    const rows = await stack.rows(
      `select count(*)::int as n from work.rate where name ~ '^login [0-9a-f-]{36}$' and slot * 90000 >= $1`,
      [stack.clock.now() - 90_000],
    );
    expect(rows).toEqual([{ n: 100 }]);
  });
});
