import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLocalLimiter, createRateLimiter, type RateLimiter } from '../../platform/limits/rate-limit.ts';
import { type CaptureRates, createCaptureRates } from '../../write-api/sessions/collect.ts';
import { type TestDatabase, testDatabase, testPool } from '../support/database.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';

const CEILINGS = {
  CAPTURES_PER_SECOND: 200,
  CAPTURES_PER_SECOND_PER_TRACKER: 100,
  CAPTURES_PER_SECOND_PER_VISITOR: 10,
};
const ratesOf = (limiter: RateLimiter) => createCaptureRates(CEILINGS, limiter, (ip) => ip);

/** Sends captures evenly over some seconds, in turn to each process, from so many visitors. @returns how many are refused */
const send = async (
  processes: readonly CaptureRates[],
  clock: ManualClock,
  {
    perSecond,
    seconds = 1,
    tracker = () => 'a tracker',
    visitors = 40,
  }: {
    readonly perSecond: number;
    readonly seconds?: number;
    readonly tracker?: (nth: number) => string;
    readonly visitors?: number;
  },
): Promise<number> => {
  let refused = 0;
  const start = clock.now();
  for (let nth = 0; nth < perSecond * seconds; nth += 1) {
    clock.set(start + Math.round((nth * 1_000) / perSecond));
    const rates = processes[nth % processes.length] as CaptureRates;
    const ip = `198.51.100.${nth % visitors}`;
    const verdict = (await rates.admitVisitor(ip)) ?? (await rates.admitCapture(tracker(nth), ip));
    if (verdict !== null) refused += 1;
  }
  return refused;
};

describe('captures in one process', () => {
  const start = () => {
    const clock = manualClock();
    return { clock, rates: ratesOf(createLocalLimiter(clock)) };
  };

  it('of one /24 at 80 a second are all taken two seconds after a burst on the same tracker', async () => {
    const { clock, rates } = start();
    expect(await send([rates], clock, { perSecond: 1_000, visitors: 250 })).toBeGreaterThan(800);
    clock.advance(2_000);
    expect(await send([rates], clock, { perSecond: 80, seconds: 6 })).toBe(0);
  });

  it('of one partner at 170 a second are all taken two seconds after the service was full', async () => {
    const { clock, rates } = start();
    const others = { perSecond: 1_000, tracker: (nth: number) => `another ${nth % 20}`, visitors: 250 };
    expect(await send([rates], clock, others)).toBeGreaterThan(700);
    clock.advance(2_000);
    const mine = { perSecond: 170, seconds: 6, tracker: (nth: number) => `mine ${nth % 2}` };
    expect(await send([rates], clock, mine)).toBe(0);
  });

  it('that are refused spend nothing: not the visitor’s rate, the tracker’s or the service’s', async () => {
    const { clock, rates } = start();
    const admitted = async (count: number, tracker: string, ip: (nth: number) => string) => {
      let taken = 0;
      for (let nth = 0; nth < count; nth += 1) {
        const verdict = (await rates.admitVisitor(ip(nth))) ?? (await rates.admitCapture(tracker, ip(nth)));
        if (verdict === null) taken += 1;
      }
      return taken;
    };
    const many = (nth: number) => `visitor ${nth % 90}`;
    expect(await admitted(100, 'full', many)).toBe(100);
    // Refused by their tracker.
    expect(await admitted(50, 'full', () => 'one')).toBe(0);
    expect(await admitted(12, 'free', () => 'one')).toBe(10);
    expect(await admitted(90, 'free', many)).toBe(90);
    // Refused by the service.
    expect(await admitted(50, 'third', () => 'two')).toBe(0);
    clock.advance(1_000);
    expect(await admitted(100, 'third', many)).toBe(100);
  });
});

describe('captures in several processes', () => {
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

  it('are all taken below nine tenths of each rate, with four processes', { timeout: 60_000 }, async () => {
    const clock = manualClock();
    const options = { pool, clock, alone: () => false };
    const processes = Array.from({ length: 4 }, () => ratesOf(createRateLimiter(options)));
    const run = randomUUID();
    const tracker = (nth: number) => `${run} ${Math.floor(nth / 4) % 2}`;
    expect(await send(processes, clock, { perSecond: 300, tracker, visitors: 250 })).toBeGreaterThan(90);
    clock.advance(2_000);
    expect(await send(processes, clock, { perSecond: 180, seconds: 2.5, tracker })).toBe(0);
  });
});
