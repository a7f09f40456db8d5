import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { createDayKeys, type DayKey, type DayKeys } from '../../platform/crypto/keyring.ts';
import { masterKeyFrom } from '../../platform/crypto/master-key.ts';
import { NOON } from '../support/api.ts';
import { type TestDatabase, testDatabase, testPool } from '../support/database.ts';
import { manualClock } from '../support/manual-clock.ts';

const TODAY = '2026-03-14';
const master = masterKeyFrom(randomBytes(32));
let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await testDatabase();
  pool = testPool(database);
});
beforeEach(() => pool.query('delete from work.keyring'));
afterAll(async () => {
  await pool.end();
  await database.drop();
});

/** The keys of a process with this clock, without a cache. */
const inProcess = (clock = manualClock(NOON)): DayKeys =>
  createDayKeys({ pool, master, clock, recheckMs: 0 });
const today = async (keys: DayKeys): Promise<DayKey> => {
  const key = await keys.of(TODAY);
  if (key === null) throw new Error('the key of today is gone');
  return key;
};

describe('a day key that another process destroyed while its clock was ahead', () => {
  const destroyed = async (): Promise<DayKeys> => {
    const clock = manualClock(NOON + 365 * DAY);
    const keys = inProcess(clock);
    await keys.destroyExpired();
    clock.set(NOON);
    return keys;
  };

  it('is stored again by a process that still has it', async () => {
    const running = inProcess();
    const sealed = (await today(running)).seal(Buffer.from('a label'));
    const corrected = await destroyed();
    await today(running);
    expect((await today(corrected)).open(sealed).toString()).toBe('a label');
  });

  it('is replaced by the key that was made for the day since', async () => {
    const running = inProcess();
    await today(running);
    const made = await today(await destroyed());
    const sealed = (await today(running)).seal(Buffer.from('a label'));
    expect(made.open(sealed).toString()).toBe('a label');
  });

  it('stays destroyed once the day has expired by the clock of the process that has it', async () => {
    const clock = manualClock(NOON);
    const running = inProcess(clock);
    await today(running);
    await destroyed();
    clock.set(NOON + 31 * DAY);
    expect(await running.of(TODAY)).toBeNull();
    expect((await pool.query('select from work.keyring')).rowCount).toBe(0);
  });
});

it('is served from memory while PostgreSQL cannot be reached', async () => {
  const gone = testPool(database);
  const keys = createDayKeys({ pool: gone, master, clock: { now: () => NOON }, recheckMs: 0 });
  await keys.of(TODAY);
  await gone.end();
  expect(await keys.of(TODAY)).not.toBeNull();
});
