import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRateLimiter } from '../../platform/limits/rate-limit.ts';
import {
  createBreaker,
  type Guard,
  guardProvider,
} from '../../processors/lookup/providers/guarded-provider.ts';
import { NotAsked, type Provider, Unavailable } from '../../processors/lookup/providers/provider.ts';
import { createProviderCounts, takeFromBudget } from '../../processors/lookup/providers/provider-counts.ts';
import { scriptedProvider } from '../support/providers.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const never = new AbortController().signal;
const log = pino({ level: 'silent' });
const NONE = { requestsPerSecond: null, requestsPerDay: null, maxWaitMs: 1_000 };
const guard = (over: Partial<Guard> = {}): Guard => ({
  admit: () => null,
  takeFromBudget: async () => true,
  today: () => '2026-03-01',
  breakerOpenMs: 3_600_000,
  onBreaker: () => undefined,
  log,
  ...over,
});

describe('a circuit breaker', () => {
  let now = 0;
  const changes: boolean[] = [];
  const open = () => {
    changes.length = 0;
    const onChange = (isOpen: boolean) => void changes.push(isOpen);
    const breaker = createBreaker({ failures: 2, openMs: 100, now: () => now, onChange });
    breaker.failed();
    expect(breaker.admits()).toBe(true);
    breaker.failed();
    return breaker;
  };
  it('opens after failures in a row and lets one probe pass in each period', () => {
    const breaker = open();
    expect([changes, breaker.isWaiting(), breaker.admits()]).toEqual([[true], true, false]);
    now += 100;
    expect([breaker.admits(), breaker.admits()]).toEqual([true, false]);
    breaker.failed();
    now += 99;
    expect(breaker.admits()).toBe(false);
  });
  it('closes with a success', () => {
    const breaker = open();
    breaker.succeeded();
    expect([breaker.isWaiting(), breaker.admits(), breaker.admits()]).toEqual([false, true, true]);
    breaker.failed();
    expect(changes).toEqual([true, false]);
  });
});

describe('a provider behind limits', () => {
  it('is not asked while its circuit breaker is open', async () => {
    let asked = 0;
    const seen: boolean[] = [];
    const down: Provider = {
      name: 'vendor',
      lookup: async () => {
        asked += 1;
        throw new Unavailable('answered 503');
      },
    };
    const guarded = guardProvider(down, NONE, guard({ onBreaker: (_name, isOpen) => seen.push(isOpen) }));
    const calls = Array.from({ length: 12 }, () => guarded.lookup('8.8.8.8', never));
    for (const { status } of await Promise.allSettled(calls)) expect(status).toBe('rejected');
    await expect(guarded.lookup('8.8.8.8', never)).rejects.toThrow(NotAsked);
    // Reported once, though twelve calls failed at the same time.
    expect([asked, ...seen]).toEqual([12, true]);
  });
  it('waits for its rate, and is not asked when that takes longer than its time limit', async () => {
    const vendor = scriptedProvider('vendor');
    let refusals = 2;
    const admit = () => {
      refusals -= 1;
      return refusals >= 0 ? { retryMs: 1 } : null;
    };
    const limits = { ...NONE, requestsPerSecond: 1 };
    const guarded = guardProvider(vendor, limits, guard({ admit }));
    expect(await guarded.lookup('8.8.8.8', never)).toBeNull();
    const slow = guardProvider(vendor, limits, guard({ admit: () => ({ retryMs: 1_001 }) }));
    await expect(slow.lookup('8.8.8.8', never)).rejects.toThrow(NotAsked);
    const away = guardProvider(vendor, limits, guard({ admit: () => Promise.reject(new Error('away')) }));
    await expect(away.lookup('8.8.8.8', never)).rejects.toThrow(NotAsked);
    expect(vendor.asked('8.8.8.8')).toBe(1);
  });
  it('says beforehand that its rate or its budget would hold a call back', async () => {
    let day = '2026-03-01';
    const limits = { ...NONE, requestsPerDay: 10 };
    const limited = guard({ takeFromBudget: async () => day !== '2026-03-01', today: () => day });
    const withBudget = guardProvider(scriptedProvider('vendor'), limits, limited);
    expect(withBudget.isHeldBack?.()).toBe(false);
    await expect(withBudget.lookup('8.8.8.8', never)).rejects.toThrow(NotAsked);
    expect(withBudget.isHeldBack?.()).toBe(true);
    day = '2026-03-02';
    expect(withBudget.isHeldBack?.()).toBe(false);

    const admit = () => ({ retryMs: 60_000 });
    const rated = { ...NONE, requestsPerSecond: 1 };
    const withRate = guardProvider(scriptedProvider('vendor'), rated, guard({ admit }));
    await expect(withRate.lookup('8.8.8.8', never)).rejects.toThrow(NotAsked);
    expect(withRate.isHeldBack?.()).toBe(true);
  });
  it('is not asked when its budget is used up, or cannot be counted', async () => {
    const vendor = scriptedProvider('vendor');
    const limits = { ...NONE, requestsPerDay: 10 };
    const usedUp = guardProvider(vendor, limits, guard({ takeFromBudget: async () => false }));
    await expect(usedUp.lookup('8.8.8.8', never)).rejects.toThrow(
      /^not asked: its budget of today is used up$/,
    );
    const away = guardProvider(
      vendor,
      limits,
      guard({ takeFromBudget: () => Promise.reject(new Error('away')) }),
    );
    await expect(away.lookup('8.8.8.8', never)).rejects.toThrow(NotAsked);
    expect(vendor.asked('8.8.8.8')).toBe(0);
  });
});

describe('over several processes', () => {
  let stack: TestStack;
  beforeAll(async () => {
    stack = await startTestStack();
  });
  afterAll(() => stack.close());

  it('a budget of a UTC day is taken exactly', async () => {
    const take = () => takeFromBudget(stack.pool, 'vendor', '2026-03-01', 10);
    const taken = await Promise.all(Array.from({ length: 40 }, take));
    expect(taken.filter((isTaken) => isTaken)).toHaveLength(10);
    expect(await takeFromBudget(stack.pool, 'vendor', '2026-03-02', 10)).toBe(true);
    expect(await takeFromBudget(stack.pool, 'other', '2026-03-01', 10)).toBe(true);
    expect(await takeFromBudget(stack.pool, 'vendor', '2026-03-01', 11)).toBe(true);
  });

  it('a rate is shared', async () => {
    const limiters = [1, 2].map(() =>
      createRateLimiter({ pool: stack.pool, clock: stack.clock, alone: () => false }),
    );
    const verdicts = [];
    for (let n = 0; n < 20; n += 1) verdicts.push(await limiters[n % 2]?.admit('provider vendor', 5));
    expect(verdicts.filter((verdict) => verdict === null).length).toBeLessThanOrEqual(5);
  });

  it('questions are counted by provider and UTC day, beside the budget', async () => {
    const all = [1, 2].map(() => createProviderCounts({ pool: stack.pool, clock: stack.clock, log }));
    for (const counts of all) {
      counts.asked('vendor', 'company', 20.4);
      counts.asked('vendor', 'failed', 100);
      counts.asked('vendor', 'not_asked', 50);
      counts.taken('vendor');
    }
    for (const counts of all) await counts.close();
    expect(
      await stack.rows("select * from work.provider_day where provider = 'vendor' and day = '2026-03-01'"),
    ).toMatchObject([
      {
        budget_used: 11,
        company: '2',
        failed: '2',
        not_asked: '2',
        taken: '2',
        isp: '0',
        duration_ms: '240',
      },
    ]);
    const [row] = await stack.rows(
      "select calls, taken from analytics.providers where provider = 'vendor' and day = '2026-03-01'",
    );
    expect(row).toEqual({ calls: '4', taken: '2' });
  });
});
