import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Batch, EventStore, NewEvent, Position } from '../../../event-store/port.ts';
import {
  all,
  event,
  events,
  eventsIn,
  expectRising,
  followUntil,
  ids,
  type SuiteContext,
  unique,
} from './context.ts';

/**
 * Appends one to three events at a time from several callers to separate streams; returns the ids in stream order.
 */
export const write = async (
  stores: readonly EventStore[],
  prefix: string,
  callers: number,
  appends: number,
): Promise<Map<string, string[]>> => {
  const written = new Map<string, string[]>();
  const caller = async (store: EventStore, stream: string): Promise<void> => {
    const list: NewEvent[] = [];
    written.set(stream, []);
    for (let n = 0; n < appends; n += 1) {
      const lot = events(1 + (n % 3));
      await store.append(stream, list.length === 0 ? 'no_stream' : list.length - 1, lot);
      list.push(...lot);
      written.set(stream, ids(list));
    }
  };
  const run = (n: number) => caller(stores[n % stores.length] as EventStore, `${prefix}-${n}`);
  await Promise.all(Array.from({ length: callers }, (_, n) => run(n)));
  return written;
};

/** Expects the batches to hold exactly what was written, each stream in its order, without a repeat. */
export const expectAll = (
  batches: readonly Batch[],
  written: Map<string, string[]>,
  after: Position | null,
): void => {
  expectRising(batches, after);
  const seen = Map.groupBy(eventsIn(batches), ({ stream }) => stream);
  expect(new Set(seen.keys())).toEqual(new Set(written.keys()));
  for (const [stream, list] of seen) expect(ids(list)).toEqual(written.get(stream));
};

const reaches =
  (position: Position | null) =>
  (batches: readonly Batch[]): boolean =>
    (batches.at(-1)?.position ?? -1n) >= (position ?? -1n);

export const follows = ({ open }: SuiteContext): void => {
  describe('following the log', () => {
    it('begins strictly after a position, also in the middle of an append', async () => {
      const store = open();
      const prefix = unique();
      const lot = events(5);
      const before = await store.head();
      await store.append(prefix, 'no_stream', lot);
      const some = (count: number) => (batches: readonly Batch[]) => eventsIn(batches).length >= count;
      const first = await followUntil(store, { after: before, prefixes: [prefix], batchSize: 2 }, some(2));
      const seen = eventsIn(first).length;
      const after = first.at(-1)?.position as Position;
      const rest = await followUntil(store, { after, prefixes: [prefix] }, some(5 - seen));
      expect(ids([...eventsIn(first), ...eventsIn(rest)])).toEqual(ids(lot));
    });

    it('returns batches of at most the requested size', async () => {
      const store = open();
      const prefix = unique();
      const after = await store.head();
      await store.append(prefix, 'no_stream', events(23));
      const head = await store.head();
      const batches = await followUntil(store, { after, prefixes: [prefix], batchSize: 5 }, reaches(head));
      expect(eventsIn(batches)).toHaveLength(23);
      for (const batch of batches) expect(batch.events.length).toBeLessThanOrEqual(5);
      expectRising(batches, after);
    });

    it('returns batches of bounded bytes', async () => {
      const store = open();
      const prefix = unique();
      const after = await store.head();
      const large = { text: 'Large '.repeat(100_000) };
      for (let n = 0; n < 30; n += 1) {
        await store.append(`${prefix}-${n}`, 'no_stream', [
          event({ data: { ...large, random: randomBytes(100_000).toString('hex') } }),
        ]);
      }
      const batches = await followUntil(store, { after, prefixes: [prefix] }, reaches(await store.head()));
      expect(eventsIn(batches)).toHaveLength(30);
      for (const batch of batches) {
        const bytes = batch.events.reduce((sum, { data }) => sum + JSON.stringify(data).length, 0);
        expect(bytes).toBeLessThan(20_000_000);
      }
      expect(batches.length).toBeGreaterThan(1);
      expectRising(batches, after);
    }, 60_000);

    it('reaches the head from the beginning', async () => {
      const store = open();
      const stream = unique();
      const { position } = await store.append(stream, 'no_stream', [event()]);
      const batches = await followUntil(store, { after: null, prefixes: [stream] }, reaches(position));
      expect(eventsIn(batches)).toHaveLength(1);
    }, 60_000);

    it('skips other streams and moves its position past them', async () => {
      const store = open();
      const wanted = unique('wanted');
      const after = await store.head();
      await store.append(unique('other'), 'no_stream', events(3));
      await store.append(wanted, 'no_stream', [event()]);
      const { position } = await store.append(unique('other'), 'no_stream', events(3));
      const batches = await followUntil(store, { after, prefixes: [unique(), wanted] }, reaches(position));
      expect(eventsIn(batches).map(({ stream }) => stream)).toEqual([wanted]);
      for (const batch of batches) expect(batch.position).toBeGreaterThan(after ?? -1n);
    });

    it("reaches the head when the log's last entries are the server's own", async () => {
      const store = open();
      const stream = unique();
      const other = unique();
      await store.append(other, 'no_stream', [event()]);
      const { position } = await store.append(stream, 'no_stream', events(4));
      await store.truncateBefore(stream, 2);
      await store.expire(other, 0);
      const head = await store.head();
      expect(head).toBe(position);
      const batches = await followUntil(store, { after: null, prefixes: [stream] }, reaches(head));
      expect(eventsIn(batches).at(-1)?.position).toBe(position);
    }, 60_000);

    it('changes from catching up to live without a gap, with several writers and followers', async () => {
      const writers = [open(), open(), open()];
      const store = open();
      const prefix = unique();
      const after = await store.head();
      const early = write(writers, `${prefix}-a`, 6, 40);
      let last: Position | null = null;
      const follow = (from: Position | null, batchSize: number) =>
        followUntil(
          store,
          { after: from, prefixes: [prefix], batchSize },
          (batches) => last !== null && reaches(last)(batches),
        );
      const followers = [follow(after, 500), follow(after, 7)];
      const written = new Map(await early);
      followers.push(follow(after, 50));
      for (const [stream, list] of await write(writers, `${prefix}-b`, 6, 40)) written.set(stream, list);
      last = (await store.append(unique(), 'no_stream', [event()])).position;
      // The event may arrive before the append returns: one more event ensures a batch.
      await store.append(unique(), 'no_stream', [event()]);
      for (const batches of await Promise.all(followers)) expectAll(batches, written, after);
    }, 60_000);

    it('waits for a slow consumer and loses nothing', async () => {
      const store = open();
      const prefix = unique();
      const after = await store.head();
      let finished = false;
      const writing = write([open(), open()], prefix, 4, 250).finally(() => {
        finished = true;
      });
      // The consumer takes one batch, waits until the writers are done, then takes the rest.
      const batches = await followUntil(
        store,
        { after, prefixes: [prefix], batchSize: 50 },
        async (taken) => {
          const written = await writing;
          expect(finished).toBe(true);
          return eventsIn(taken).length >= [...written.values()].flat().length;
        },
      );
      expectAll(batches, await writing, after);
    }, 60_000);

    it('that restarts repeatedly where the last run ended sees each event once', async () => {
      const store = open();
      const prefix = unique();
      const first = await store.head();
      const writing = write([open(), open()], prefix, 4, 60);
      const batches: Batch[] = [];
      let position = first;
      for (let run = 1; eventsIn(batches).length < 480; run += 1) {
        const left = 480 - eventsIn(batches).length;
        const options = { after: position, prefixes: [prefix], batchSize: 1 + (run % 11) };
        const enough = (soFar: readonly Batch[]) => soFar.length > run % 4 || eventsIn(soFar).length >= left;
        const taken = await followUntil(store, options, enough);
        batches.push(...taken);
        position = taken.at(-1)?.position ?? position;
      }
      expectAll(batches, await writing, first);
    }, 60_000);

    it('ends without an error when it is aborted while waiting, working or before its start', async () => {
      const store = open();
      const head = await store.head();
      expect(await all(store.follow({ after: null, signal: AbortSignal.abort() }))).toEqual([]);
      const stop = new AbortController();
      const waiting = all(store.follow({ after: head, prefixes: [unique()], signal: stop.signal }));
      await store.append(unique(), 'no_stream', [event()]);
      stop.abort();
      expect(eventsIn(await waiting)).toEqual([]);
    });

    it('ends when the store is closed', async () => {
      const store = open();
      const after = await store.head();
      const waiting = all(
        store.follow({ after, prefixes: [unique()], signal: new AbortController().signal }),
      );
      await store.close();
      expect(eventsIn(await waiting)).toEqual([]);
    });
  });
};
