import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import { readTogether } from '../../platform/read-together.ts';
import { createLogins } from '../../processors/partners/logins.ts';
import { createCertificateNames, createDomainDirectory } from '../../queries/domains/directory.ts';
import { createAuthenticate } from '../../queries/partners/calling-keys.ts';
import { manualClock } from '../support/manual-clock.ts';

it('reads the keys that come during a read with the next one, each once a call', async () => {
  const reads: (readonly string[])[] = [];
  const find = readTogether(async (keys) => {
    reads.push(keys);
    return new Map([['b', 2]]);
  });
  expect(await Promise.all(['a', 'b', 'c'].map(find))).toEqual([null, 2, null]);
  expect(reads).toEqual([['a'], ['b', 'c']]);
});

it('does not wait long for a read that is not answered', async () => {
  const reads: (readonly string[])[] = [];
  const find = readTogether((keys) => {
    reads.push(keys);
    return reads.length === 1 ? new Promise<never>(() => undefined) : Promise.resolve(new Map([['b', 2]]));
  });
  void find('a');
  expect(await Promise.all([find('b'), find('c')])).toEqual([2, null]);
  expect(reads).toEqual([['a'], ['b', 'c']]);
});

it('fails those that share a read which fails, and no later one', async () => {
  let isAway = true;
  const find = readTogether(async () => {
    if (isAway) throw new Error('away');
    return new Map([['a', 1]]);
  });
  await expect(find('a')).rejects.toThrow('away');
  isAway = false;
  expect(await find('a')).toBe(1);
});

describe('of callers without a name, whatever they send,', () => {
  const pool = () => {
    let statements = 0;
    const query = async () => {
      statements += 1;
      return { rows: [] };
    };
    return { pool: { query } as unknown as pg.Pool, statements: () => statements };
  };
  const many = Array.from({ length: 200 }, (_, nth) => nth);

  it.each([
    ['tokens', (db: pg.Pool) => createAuthenticate(db, manualClock()), (nth: number) => `dp_${nth}`],
    [
      'cookies',
      (db: pg.Pool) => createLogins({ pool: db, clock: manualClock() }).find,
      (nth: number) => `${nth}`.padStart(43, 'a'),
    ],
    [
      'names of certificates',
      (db: pg.Pool) => {
        const mayHave = createCertificateNames(db);
        return async (name: string) => (await mayHave(name)) || null;
      },
      (nth: number) => `a${nth}.example`,
    ],
    ['hosts', (db: pg.Pool) => createDomainDirectory(db).trackerOf, (nth: number) => `a${nth}.example`],
  ])('two hundred %s at once take one connection', async (_what, create, sent) => {
    const { pool: db, statements } = pool();
    const find = create(db);
    expect(await Promise.all(many.map((nth) => find(sent(nth))))).toEqual(many.map(() => null));
    expect(statements()).toBe(2);
  });
});
