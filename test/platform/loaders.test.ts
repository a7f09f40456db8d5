import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import { rowLoader, shortCache } from '../../platform/limits/loaders.ts';
import { createLogins } from '../../processors/partners/logins.ts';
import { createCertificateNames, createDomainDirectory } from '../../queries/domains/directory.ts';
import { createAuthenticate } from '../../queries/partners/partners.ts';
import { manualClock } from '../support/manual-clock.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a row loader', () => {
  it('reads the keys that come during a read with the next one, each once', async () => {
    const reads: (readonly string[])[] = [];
    const find = rowLoader(async (keys) => {
      reads.push(keys);
      await turn();
      return new Map([['b', 2]]);
    });
    const first = find('a');
    await Promise.resolve();
    await Promise.resolve();
    expect(await Promise.all([first, ...['b', 'c', 'b'].map(find)])).toEqual([null, 2, null, 2]);
    expect(reads).toEqual([['a'], ['b', 'c']]);
  });

  it('does not wait long for a read that is not answered', async () => {
    let reads = 0;
    const find = rowLoader((): Promise<Map<string, number>> => {
      reads += 1;
      return reads === 1 ? new Promise(() => undefined) : Promise.resolve(new Map([['b', 2]]));
    });
    void find('a');
    await turn();
    expect(await Promise.all([find('b'), find('c')])).toEqual([2, null]);
  });

  it('fails the callers that share a read which fails, and no later one', async () => {
    let isAway = true;
    const find = rowLoader(async () => {
      if (isAway) throw new Error('away');
      return new Map([['a', 1]]);
    });
    await expect(find('a')).rejects.toThrow('away');
    isAway = false;
    expect(await find('a')).toBe(1);
  });

  const pool = () => {
    let statements = 0;
    const query = async () => {
      statements += 1;
      await turn();
      return { rows: [] };
    };
    return { pool: { query } as unknown as pg.Pool, statements: () => statements };
  };

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
  ])('reads two hundred unknown %s at once over one connection', async (_what, create, sent) => {
    const { pool: db, statements } = pool();
    const find = create(db);
    const found = await Promise.all(Array.from({ length: 200 }, (_, nth) => find(sent(nth))));
    expect(found).toEqual(Array(200).fill(null));
    expect(statements()).toBeLessThanOrEqual(2);
  });
});

describe('a short cache', () => {
  it('loads once for simultaneous callers and those soon after, and again half a second later', async () => {
    let loads = 0;
    const { find } = shortCache(async () => ++loads, { max: 10 });
    expect(await Promise.all([find('a'), find('a')])).toEqual([1, 1]);
    expect(find('a')).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 420));
    expect(await find('a')).toBe(2);
  });

  it('trusts an answer from when it was asked for, not from when it came', async () => {
    let loads = 0;
    const { find } = shortCache(
      async () => {
        await new Promise((resolve) => setTimeout(resolve, 450));
        return ++loads;
      },
      { max: 10 },
    );
    expect(await find('a')).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 2));
    expect(await find('a')).toBe(2);
  });

  it('does not cache what it is told not to, nor a failure', async () => {
    let loads = 0;
    const { find } = shortCache(
      async () => {
        loads += 1;
        if (loads === 1) throw new Error('away');
        return null;
      },
      { max: 10, isCached: (value) => value !== null },
    );
    await expect(find('a')).rejects.toThrow('away');
    expect(await find('a')).toBeNull();
    await new Promise((resolve) => setTimeout(resolve, 2));
    expect(await find('a')).toBeNull();
    expect(loads).toBe(3);
  });

  it('does not cache what was loaded before it was forgotten, and holds no more than its maximum', async () => {
    let loads = 0;
    const { find, forget } = shortCache(
      async () => {
        await turn();
        return ++loads;
      },
      { max: 2 },
    );
    const before = find('a');
    forget('a');
    const after = find('a');
    expect(await Promise.all([before, after])).toEqual([1, 2]);
    expect(find('a')).toBe(2);
    for (const key of ['b', 'c']) await find(key);
    expect(await find('a')).toBe(5);
  });
});
