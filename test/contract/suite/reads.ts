import { describe, expect, it } from 'vitest';
import type { EventStore, ReadOptions } from '../../../event-store/port.ts';
import { all, events, ids, type SuiteContext, unique } from './context.ts';

export const reads = ({ open }: SuiteContext): void => {
  const revisions = async (store: EventStore, stream: string, options: ReadOptions): Promise<number[]> =>
    (await all(store.readStream(stream, options))).map(({ revision }) => revision);

  describe('reading a stream', () => {
    it('returns nothing when the stream does not exist', async () => {
      const store = open();
      expect(await all(store.readStream(unique()))).toEqual([]);
      expect(await all(store.readStream(unique(), { direction: 'backwards', limit: 1 }))).toEqual([]);
    });

    it.each<[ReadOptions, number[]]>([
      [{}, [0, 1, 2, 3, 4]],
      [{ from: 2 }, [2, 3, 4]],
      [{ from: 2, limit: 2 }, [2, 3]],
      [{ from: 5 }, []],
      [{ from: 500 }, []],
      [{ limit: 0 }, []],
      [{ direction: 'backwards' }, [4, 3, 2, 1, 0]],
      [{ direction: 'backwards', limit: 1 }, [4]],
      [{ direction: 'backwards', from: 3 }, [3, 2, 1, 0]],
      [{ direction: 'backwards', from: 3, limit: 2 }, [3, 2]],
      [{ direction: 'backwards', from: 0 }, [0]],
      [{ direction: 'backwards', from: 500, limit: 2 }, [4, 3]],
    ])('of five events with %o returns %o', async (options, expected) => {
      const store = open();
      const stream = unique();
      await store.append(stream, 'no_stream', events(5));
      expect(await revisions(store, stream, options)).toEqual(expected);
    });

    it('of many events returns all, in both directions', async () => {
      const store = open();
      const stream = unique();
      const lot = events(2_300);
      for (let at = 0; at < lot.length; at += 100) {
        await store.append(stream, at === 0 ? 'no_stream' : at - 1, lot.slice(at, at + 100));
      }
      expect(ids(await all(store.readStream(stream)))).toEqual(ids(lot));
      expect(ids(await all(store.readStream(stream, { direction: 'backwards' })))).toEqual(
        ids(lot).reverse(),
      );
      expect(await all(store.readStream(stream, { limit: 1_700 }))).toHaveLength(1_700);
    });

    it('sees every acknowledged append and may be aborted in the middle any number of times', async () => {
      const store = open();
      const stream = unique();
      await store.append(stream, 'no_stream', events(1_000));
      for (let n = 0; n < 150; n += 1) {
        for await (const { revision } of store.readStream(stream)) if (revision >= n) break;
      }
      await store.append(stream, 999, events(1));
      expect(await revisions(store, stream, { direction: 'backwards', limit: 1 })).toEqual([1_000]);
    });
  });
};
