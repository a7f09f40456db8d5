import fc from 'fast-check';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLocalLimiter, createRateLimiter, sweepRates } from '../../platform/limits/rate-limit.ts';
import { type TestDatabase, testDatabase, testPool } from '../support/database.ts';
import { manualClock } from '../support/manual-clock.ts';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await testDatabase();
  pool = testPool(database, 4);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

describe('a limit in one process', () => {
  it('admits the ceiling at once, and no more until the oldest is a window ago', () => {
    const clock = manualClock();
    const limiter = createLocalLimiter(clock);
    const admitted = Array.from({ length: 30 }, () => limiter.admit('k', 10)).filter(
      (verdict) => verdict === null,
    );
    expect(admitted).toHaveLength(10);
    clock.advance(999);
    expect(limiter.admit('k', 10)).toEqual({ retryMs: 1 });
    clock.advance(1);
    expect(limiter.admit('k', 10)).toBeNull();
  });

  it('never admits more than the ceiling in any window', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.integer({ min: 0, max: 400 })),
        (ceiling, steps) => {
          const clock = manualClock();
          const limiter = createLocalLimiter(clock);
          const admitted: number[] = [];
          for (const step of steps) {
            clock.advance(step);
            if (limiter.admit('k', ceiling) === null) admitted.push(clock.now());
          }
          for (const at of admitted) {
            expect(admitted.filter((other) => other > at - 1_000 && other <= at).length).toBeLessThanOrEqual(
              ceiling,
            );
          }
        },
      ),
    );
  });

  it('tells what is left, and until when', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.integer({ min: 0, max: 400 })),
        (ceiling, steps) => {
          const clock = manualClock();
          const limiter = createLocalLimiter(clock);
          for (const step of steps) {
            clock.advance(step);
            limiter.admit('k', ceiling);
            const { left, resetMs } = limiter.quota('k', ceiling);
            if (left === 0) expect(limiter.admit('k', ceiling)).toEqual({ retryMs: resetMs });
            else {
              const more = Array.from({ length: ceiling + 1 }, () => limiter.admit('k', ceiling));
              expect(more.filter((verdict) => verdict === null)).toHaveLength(left);
            }
          }
        },
      ),
    );
  });

  it('gives back the latest admission, and no more than were made', () => {
    const limiter = createLocalLimiter(manualClock());
    limiter.giveBack('k', 2);
    expect([limiter.admit('k', 2), limiter.admit('k', 2)]).toEqual([null, null]);
    limiter.giveBack('k', 2);
    expect(limiter.admit('k', 2)).toBeNull();
    expect(limiter.admit('k', 2)).not.toBeNull();
  });

  it('limits names separately and applies a changed ceiling', () => {
    const limiter = createLocalLimiter(manualClock());
    expect([limiter.admit('a', 1), limiter.admit('b', 1)]).toEqual([null, null]);
    expect(limiter.admit('a', 1)).not.toBeNull();
    expect(limiter.admit('a', 5)).toBeNull();
  });
});

describe('a limit over several processes', () => {
  const two = (clock = manualClock()) => {
    const options = { pool, clock, alone: () => false };
    return { clock, both: [createRateLimiter(options), createRateLimiter(options)] as const };
  };
  const count = async (name: string, ceiling: number, calls: number, { both }: ReturnType<typeof two>) => {
    const verdicts = await Promise.all(
      Array.from({ length: calls }, (_, n) => both[n % 2 === 0 ? 0 : 1].admit(name, ceiling)),
    );
    return verdicts.filter((verdict) => verdict === null).length;
  };

  it('is exact when its ceiling is small', async () => {
    expect(await count('small', 5, 60, two())).toBe(5);
  });

  it('is never exceeded and almost fully used when it is leased in blocks', async () => {
    const admitted = await count('large', 400, 1_000, two());
    expect(admitted).toBeLessThanOrEqual(400);
    expect(admitted).toBeGreaterThanOrEqual(360);
  });

  it('holds in every window while time passes', async () => {
    const processes = two();
    const admitted: [at: number, count: number][] = [];
    for (let step = 0; step < 40; step += 1) {
      processes.clock.advance(130);
      admitted.push([processes.clock.now(), await count('steady', 20, 10, processes)]);
    }
    for (const [at] of admitted) {
      const window = admitted.filter(([other]) => other > at - 1_000 && other <= at);
      expect(window.reduce((sum, [, n]) => sum + n, 0)).toBeLessThanOrEqual(20);
    }
    const all = admitted.reduce((sum, [, n]) => sum + n, 0);
    expect(all).toBeGreaterThanOrEqual(0.85 * 20 * 5.2);
  });

  it('outlives a process when its window is longer than a second', async () => {
    const clock = manualClock();
    const admit = () => createRateLimiter({ pool, clock, alone: () => true }).admit('intake', 2, 60_000);
    expect([await admit(), await admit()]).toEqual([null, null]);
    expect(await admit()).not.toBeNull();
  });

  it('tells what is left over all processes', async () => {
    const clock = manualClock();
    const [one, other] = two(clock).both;
    const left: number[] = [];
    for (let call = 0; call < 10; call += 1) {
      const limiter = call % 2 === 0 ? one : other;
      await limiter.admit('shared quota', 10);
      left.push(limiter.quota('shared quota', 10).left);
      // A block lasts a tenth of the window, and its rest goes back.
      clock.advance(99);
    }
    expect(left).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    expect(await one.admit('shared quota', 10)).toEqual({ retryMs: one.quota('shared quota', 10).resetMs });
    clock.advance(2_000);
    await one.admit('shared quota', 10);
    expect(one.quota('shared quota', 10).left).toBe(9);
  });

  it.each([1_000, 60_000])('counts nothing that is given back, in a window of %i ms', async (windowMs) => {
    const { both } = two();
    const name = `given back ${windowMs}`;
    for (let call = 0; call < 20; call += 1) {
      const limiter = both[call % 2 === 0 ? 0 : 1];
      expect(await limiter.admit(name, 10, windowMs)).toBeNull();
      await limiter.giveBack(name, 10, windowMs);
    }
  });

  it('reports how long to wait', async () => {
    const processes = two();
    await processes.both[0].admit('waiting', 1, 60_000);
    const verdict = await processes.both[1].admit('waiting', 1, 60_000);
    expect(verdict?.retryMs).toBeGreaterThan(0);
    expect(verdict?.retryMs).toBeLessThanOrEqual(66_000);
  });
});

describe.each([
  ['an hour', 3_600_000],
  ['a year', 365 * 86_400_000],
])('a rate that a clock ahead by %s used up', (by, ahead) => {
  it.each([1_000, 60_000])('is free a window of %i ms after the correction', async (windowMs) => {
    const clock = manualClock(Date.UTC(2026, 2, 1));
    const limiter = createRateLimiter({ pool, clock, alone: () => false });
    const spend = () => limiter.admit(`spent ${by} ${windowMs}`, 2, windowMs);
    clock.advance(ahead);
    expect([await spend(), await spend()]).toEqual([null, null]);
    expect(await spend()).not.toBeNull();
    clock.advance(-ahead);
    const refused = await spend();
    expect(refused?.retryMs).toBeLessThanOrEqual(windowMs * 1.1);
    clock.advance(refused?.retryMs ?? 0);
    expect([await spend(), await spend()]).toEqual([null, null]);
    expect(await spend()).not.toBeNull();
  });

  it('is deleted', async () => {
    const clock = manualClock(Date.UTC(2026, 2, 1));
    const limiter = createRateLimiter({ pool, clock, alone: () => false });
    clock.advance(ahead);
    await limiter.admit(`ahead ${by}`, 2);
    clock.advance(-ahead);
    await sweepRates(pool, clock.now());
    expect((await pool.query(`select from work.rate where name ^@ 'ahead '`)).rows).toEqual([]);
  });
});

describe('rates without recent use', () => {
  it('are deleted two of their windows later, whatever their names', async () => {
    const clock = manualClock();
    const limiter = createRateLimiter({ pool, clock, alone: () => false });
    const windows = { second: 1_000, minute: 60_000, day: 86_400_000 };
    for (const [name, window] of Object.entries(windows)) await limiter.admit(`swept a ${name}`, 10, window);
    await pool.query(`insert into work.rate (name, slot, used) values ('swept a 0.2.0', 1, '{1}')`);
    const left = async (after: number) => {
      await sweepRates(pool, clock.now() + after);
      const { rows } = await pool.query(`select name from work.rate where name ^@ 'swept '`);
      return rows.map(({ name }) => name.split(' ').at(-1)).toSorted();
    };
    expect(await left(1_900)).toEqual(['day', 'minute', 'second']);
    expect(await left(2_200)).toEqual(['day', 'minute']);
    expect(await left(119_000)).toEqual(['day', 'minute']);
    expect(await left(132_000)).toEqual(['day']);
    expect(await left(2 * windows.day - 1)).toEqual(['day']);
    expect(await left(2.2 * windows.day)).toEqual([]);
  });
});
