import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRateLimiter } from '../../platform/limits/rate-limit.ts';
import { createBreaker } from '../../processors/lookup/providers/breaker.ts';
import { type Guard, guardProvider } from '../../processors/lookup/providers/guarded-provider.ts';
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
  breakerPeriodMs: 3_600_000,
  onBreaker: () => undefined,
  log,
  ...over,
});

describe('a circuit breaker', () => {
  const PERIOD_MS = 100;
  const open = () => {
    let now = 0;
    const changes: boolean[] = [];
    const breaker = createBreaker({
      periodMs: PERIOD_MS,
      now: () => now,
      onChange: (isOpen) => void changes.push(isOpen),
    });
    const call = (ip: string, mayProbe = true) => breaker.admit(ip, mayProbe);
    return {
      breaker,
      changes,
      call,
      fails: (ip: string, mayProbe?: boolean) => call(ip, mayProbe)?.failed(new Error('answered 503')),
      succeeds: (ip: string, mayProbe?: boolean) => call(ip, mayProbe)?.succeeded(),
      passes: (ms: number) => {
        now += ms;
      },
    };
  };
  const addresses = (count: number, first = 1): string[] =>
    Array.from({ length: count }, (_, n) => `8.8.4.${first + n}`);
  const opened = () => {
    const all = open();
    for (const ip of addresses(10)) all.fails(ip);
    return all;
  };

  it('opens when ten of the last twenty addresses have failed, and not by nine that fail for ever', () => {
    const { breaker, changes, fails, succeeds } = open();
    for (let times = 0; times < 5; times += 1) for (const ip of addresses(9)) fails(ip);
    expect(breaker.isOpen()).toBe(false);
    for (const ip of addresses(11, 100)) succeeds(ip);
    for (const ip of addresses(9, 200)) fails(ip);
    expect(breaker.isOpen()).toBe(false);
    fails('8.8.8.8');
    expect([breaker.isOpen(), changes]).toEqual([true, [true]]);
  });

  it('admits five probes in each period while it is open, evenly spaced', () => {
    const { breaker, call, fails, passes } = opened();
    expect([breaker.hasProbe(), call('8.8.8.8')]).toEqual([false, null]);
    const times: number[] = [];
    for (let ms = 1; ms <= 3 * PERIOD_MS; ms += 1) {
      passes(1);
      if (!breaker.hasProbe()) continue;
      fails('8.8.8.8');
      times.push(ms);
    }
    expect(times).toEqual(Array.from({ length: 15 }, (_, n) => 20 * (n + 1)));
  });

  it('admits five probes at a time', () => {
    const { breaker, call, passes } = opened();
    const probes = addresses(7, 100).map((ip) => {
      passes(PERIOD_MS);
      return call(ip);
    });
    expect(probes.map((probe) => probe !== null)).toEqual([true, true, true, true, true, false, false]);
    expect(breaker.hasProbe()).toBe(false);
    probes[0]?.withdrawn();
    expect(breaker.hasProbe()).toBe(true);
  });

  it('holds back what may not probe', () => {
    const { call, passes } = opened();
    passes(PERIOD_MS);
    expect(call('8.8.8.8', false)).toBeNull();
    expect(call('8.8.8.8', true)).not.toBeNull();
  });

  it('closes with a success, and stays closed beside addresses that failed before', () => {
    const { breaker, changes, fails, succeeds, passes } = opened();
    passes(PERIOD_MS);
    succeeds('8.8.8.8');
    expect(breaker.isOpen()).toBe(false);
    for (let times = 0; times < 5; times += 1) for (const ip of addresses(10)) fails(ip);
    expect([breaker.isOpen(), changes]).toEqual([false, [true, false]]);
    for (const ip of addresses(10, 100)) fails(ip);
    expect(breaker.isOpen()).toBe(true);
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
    const calls = Array.from({ length: 12 }, (_, n) => guarded.lookup(`8.8.8.${n}`, never));
    for (const { status } of await Promise.allSettled(calls)) expect(status).toBe('rejected');
    await expect(guarded.lookup('8.8.8.8', never)).rejects.toThrow(NotAsked);
    // Reported once, though twelve calls failed at the same time.
    expect([asked, ...seen]).toEqual([12, true]);
    expect([guarded.isHeldBack?.(), guarded.hasProbe?.()]).toEqual([true, false]);
  });
  it('is asked once by a probe, without the retry of a lost connection', async () => {
    let requests = 0;
    const lost: Provider = {
      name: 'vendor',
      lookup: async (_ip, _signal, { again } = {}) => {
        requests += 1;
        await again?.().then(
          () => {
            requests += 1;
          },
          () => undefined,
        );
        throw new Unavailable('no answer: ECONNREFUSED');
      },
    };
    const guarded = guardProvider(lost, NONE, guard({ breakerPeriodMs: 0 }));
    for (let n = 0; n < 10; n += 1) await guarded.lookup(`8.8.8.${n}`, never).catch(() => undefined);
    expect([requests, guarded.hasProbe?.()]).toEqual([20, true]);
    await expect(guarded.lookup('8.8.4.4', never)).rejects.toThrow(Unavailable);
    expect(requests).toBe(21);
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
