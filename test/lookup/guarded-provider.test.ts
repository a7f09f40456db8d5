import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRateLimiter } from '../../platform/rate-limit.ts';
import { createBreaker } from '../../processors/lookup/breaker.ts';
import { createFairBreaker } from '../../processors/lookup/fair-breaker.ts';
import { type Guard, guardProvider } from '../../processors/lookup/guarded-provider.ts';
import { createHttpProvider } from '../../processors/lookup/http-provider.ts';
import { NotAsked, type Provider, Unavailable } from '../../processors/lookup/provider.ts';
import { createProviderCounts, takeFromBudget } from '../../processors/lookup/provider-counts.ts';
import { startAnsweringServer } from '../support/answering-server.ts';
import { scriptedProvider } from '../support/providers.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const never = new AbortController().signal;
const log = pino({ level: 'silent' });
const NONE = { requestsPerSecond: null, requestsPerDay: null, maxWaitMs: 1_000 };
const guard = (over: Partial<Guard> = {}): Guard => ({
  admit: () => null,
  takeFromBudget: async () => true,
  breakerOpenMs: 3_600_000,
  onBreaker: () => undefined,
  log,
  ...over,
});

describe('a circuit breaker', () => {
  let now = 0;
  const open = () => {
    const breaker = createBreaker({ failures: 2, openMs: 100, now: () => now });
    breaker.failed();
    expect(breaker.admits()).toBe(true);
    breaker.failed();
    return breaker;
  };
  it('opens after failures in a row and lets one probe pass in each period', () => {
    const breaker = open();
    expect([breaker.isOpen(), breaker.admits()]).toEqual([true, false]);
    now += 100;
    expect([breaker.admits(), breaker.admits()]).toEqual([true, false]);
    breaker.failed();
    now += 99;
    expect(breaker.admits()).toBe(false);
  });
  it('closes with a success', () => {
    const breaker = open();
    breaker.succeeded();
    expect([breaker.isOpen(), breaker.admits(), breaker.admits()]).toEqual([false, true, true]);
    breaker.failed();
    expect(breaker.isOpen()).toBe(false);
  });
});

describe('a circuit breaker of several askers', () => {
  const open = () => {
    let now = 0;
    const breaker = createFairBreaker({ failures: 2, openMs: 100, now: () => now });
    return {
      ...breaker,
      fails: (...askers: readonly string[]) => {
        for (const asker of askers) breaker.failed(asker);
      },
      later: (ms: number) => {
        now += ms;
      },
    };
  };
  it('opens for the asker whose calls fail and for no other', () => {
    const { fails, admits, isOpen, later } = open();
    fails('a', 'a', 'a', 'a');
    expect([admits('a'), admits('b'), isOpen()]).toEqual([false, true, true]);
    later(100);
    expect([admits('a'), admits('a'), admits('b')]).toEqual([true, false, true]);
  });
  it('stays open for an asker while the calls of others succeed', () => {
    const { fails, admits, isOpen, succeeded } = open();
    fails('a', 'a');
    succeeded('b');
    expect([admits('a'), admits('b'), isOpen()]).toEqual([false, true, false]);
    succeeded('a');
    expect(admits('a')).toBe(true);
  });
  it('opens for all once the calls of three askers fail, and lets one probe of any pass in each period', () => {
    const { fails, admits, succeeded, later } = open();
    fails('a', 'a', 'b', 'b');
    expect(admits('d')).toBe(true);
    fails('c', 'c');
    expect(admits('d')).toBe(false);
    later(100);
    expect([admits('d'), admits('a')]).toEqual([true, false]);
    succeeded('d');
    expect(['a', 'b', 'c', 'd'].map(admits)).toEqual([true, true, true, true]);
  });
  it('does not open for all where a success comes between the failures of three', () => {
    const { fails, admits, succeeded } = open();
    fails('a', 'a', 'b', 'b');
    succeeded('d');
    fails('c', 'c');
    expect(['a', 'b', 'c', 'd'].map(admits)).toEqual([false, false, false, true]);
  });
});

/** A provider whose rate admits every second call at once, and the addresses that it was asked about. */
const withFewCalls = () => {
  const asked: string[] = [];
  const vendor: Provider = {
    name: 'vendor',
    lookup: async (ip) => {
      asked.push(ip);
      return null;
    },
  };
  let isRefused = true;
  const admit = () => {
    isRefused = !isRefused;
    return isRefused ? { retryMs: 1 } : null;
  };
  const guarded = guardProvider(vendor, { ...NONE, requestsPerSecond: 1 }, guard({ admit }));
  return { guarded, asked };
};

describe('a provider behind limits', () => {
  it('is asked for others while the addresses of one asker make it fail', async () => {
    const picky: Provider = {
      name: 'vendor',
      lookup: async (ip) => {
        if (ip === '2600::1') throw new Unavailable('answered 500');
        return null;
      },
    };
    const guarded = guardProvider(picky, NONE, guard());
    const ask = (ip: string, asker: string) => guarded.lookup(ip, never, { askers: [asker] });
    for (let n = 1; n <= 20; n += 1) await ask('2600::1', 'anna').catch(() => undefined);
    await expect(ask('8.8.8.8', 'anna')).rejects.toThrow(NotAsked);
    expect(await ask('8.8.8.8', 'bert')).toBeNull();
  });
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
  it('is asked about other addresses although it rejects some', async () => {
    const vendor = scriptedProvider('vendor');
    vendor.says('2600::1', 'fails');
    const guarded = guardProvider(vendor, NONE, guard());
    for (let n = 1; n <= 20; n += 1)
      await expect(guarded.lookup('2600::1', never)).rejects.toThrow('scripted');
    expect(await guarded.lookup('8.8.8.8', never)).toBeNull();
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
  it('is asked for each asker in turn while its rate admits few calls', async () => {
    const { guarded, asked } = withFewCalls();
    const annas = Array.from({ length: 15 }, (_, n) =>
      guarded.lookup(`anna ${n}`, never, { askers: ['anna'] }),
    );
    const berts = [1, 2].map((n) => guarded.lookup(`bert ${n}`, never, { askers: ['bert'] }));
    await Promise.all([...annas, ...berts]);
    expect(asked.indexOf('bert 1')).toBeLessThanOrEqual(2);
    expect(asked.indexOf('bert 2')).toBeLessThanOrEqual(4);
    expect(asked).toHaveLength(17);
  });
  it('is asked in the turn of any partner that waits for the address', async () => {
    const { guarded, asked } = withFewCalls();
    const ask = (ip: string, ...askers: string[]) => guarded.lookup(ip, never, { askers });
    const annas = Array.from({ length: 15 }, (_, n) => ask(`anna ${n}`, 'anna'));
    await Promise.all([...annas, ask('of both', 'anna', 'bert'), ask('bert', 'bert')]);
    expect(asked.indexOf('of both')).toBeLessThanOrEqual(2);
    expect(asked.indexOf('bert')).toBeLessThanOrEqual(4);
    expect(asked).toHaveLength(17);
  });
  it('is asked about an address of two partners while the circuit breaker of one is open', async () => {
    const vendor = scriptedProvider('vendor');
    const failing: Provider = {
      ...vendor,
      lookup: async (ip, signal, options) => {
        if (ip === '2600::1') throw new Unavailable('answered 500');
        return vendor.lookup(ip, signal, options);
      },
    };
    const guarded = guardProvider(failing, NONE, guard());
    const ask = (ip: string, ...askers: string[]) => guarded.lookup(ip, never, { askers });
    for (let n = 1; n <= 20; n += 1) await ask('2600::1', 'anna').catch(() => undefined);
    await expect(ask('8.8.8.8', 'anna')).rejects.toThrow(NotAsked);
    expect(await ask('8.8.8.8', 'anna', 'bert')).toBeNull();
  });
  it('is not asked after an abort, and still for the calls of others', async () => {
    const vendor = scriptedProvider('vendor');
    const turn = Promise.withResolvers<null>();
    const guarded = guardProvider(
      vendor,
      { ...NONE, requestsPerSecond: 1 },
      guard({ admit: () => turn.promise }),
    );
    const stopping = new AbortController();
    const aborted = guarded.lookup('8.8.4.4', stopping.signal);
    const other = guarded.lookup('8.8.8.8', never);
    stopping.abort();
    await expect(aborted).rejects.toThrow(NotAsked);
    turn.resolve(null);
    expect(await other).toBeNull();
    await expect(guarded.lookup('8.8.4.4', stopping.signal)).rejects.toThrow(NotAsked);
    expect(vendor.asked('8.8.4.4')).toBe(0);
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

it('takes each call of a lookup from the budget, also one that repeats a lost one', async () => {
  const server = await startAnsweringServer();
  server.answers((response) => response.destroy());
  const url = `${server.base}/{ip}`;
  const vendor = createHttpProvider({ url, token: undefined, timeoutMs: 5_000, mapping: null });
  let left = 3;
  const takeFromBudget = async () => {
    left -= 1;
    return left >= 0;
  };
  const guarded = guardProvider(vendor, { ...NONE, requestsPerDay: 3 }, guard({ takeFromBudget }));
  await expect(guarded.lookup('8.8.8.8', never)).rejects.toThrow(Unavailable);
  // Without the call that would repeat it.
  await expect(guarded.lookup('8.8.4.4', never)).rejects.toThrow(Unavailable);
  await expect(guarded.lookup('8.8.4.4', never)).rejects.toThrow(NotAsked);
  expect(server.asked).toHaveLength(3);
  await vendor.close();
  server.close();
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

  it('counts are saved by processes at once, whatever provider each asked first', async () => {
    const names = Array.from({ length: 400 }, (_, n) => `provider ${n}`);
    const both = [names, names.toReversed()].map((asked) => {
      const counts = createProviderCounts({ pool: stack.pool, clock: stack.clock, log });
      const ask = () => {
        for (const name of asked) counts.asked(name, 'company', 1);
      };
      return { counts, ask };
    });
    const rounds = 20;
    for (let round = 0; round < rounds; round += 1) {
      for (const { ask } of both) ask();
      await Promise.all(both.map(({ counts }) => counts.close()));
    }
    const saved = await stack.rows(
      "select distinct company from work.provider_day where provider ^@ 'provider '",
    );
    expect(saved).toEqual([{ company: String(2 * rounds) }]);
  });
});
