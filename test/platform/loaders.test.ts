import { describe, expect, it } from 'vitest';
import { rowLoader, shortCache } from '../../platform/limits/loaders.ts';

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
});
