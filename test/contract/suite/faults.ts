import { describe, expect, it, vi } from 'vitest';
import { type EventStore, OutcomeUnknown, StoreBusy, StoreUnavailable } from '../../../event-store/port.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import {
  all,
  event,
  events,
  eventsIn,
  followUntil,
  ids,
  refusal,
  type SuiteContext,
  unique,
} from './context.ts';
import { expectAll, write } from './follows.ts';

const DEADLINE_MS = 3_000;
/** How far a busy machine may exceed a deadline. */
const GRACE_MS = 1_500;

/** Resolves when the client has sent something since the call. */
const underWay = (proxy: TcpProxy, before: number): Promise<void> =>
  vi.waitFor(() => expect(proxy.sent()).toBeGreaterThan(before + 100), { timeout: 5_000, interval: 5 });

/** Opens the connections that reads and appends use, so that these break. */
const warmUp = async (store: EventStore): Promise<void> => {
  await store.append(unique('warm'), 'no_stream', [event()]);
  await store.head();
};

export const faults = ({ open, openBehindProxy }: SuiteContext): void => {
  describe('when connections break', () => {
    it('a follower misses no event and sees none twice', async () => {
      const { store, proxy } = await openBehindProxy();
      const prefix = unique();
      const after = await store.head();
      const writing = write([open()], prefix, 4, 80);
      let cuts = 0;
      const batches = await followUntil(store, { after, prefixes: [prefix], batchSize: 20 }, (taken) => {
        const count = eventsIn(taken).length;
        if (cuts < 6 && count >= (cuts + 1) * 80) {
          cuts += 1;
          proxy.cut();
        }
        return count >= 4 * 159;
      });
      expect(cuts).toBe(6);
      expectAll(batches, await writing, after);
    }, 60_000);

    it('an append in progress is stored once at an exact expectation, and its result is found again', async () => {
      const { store, proxy } = await openBehindProxy();
      await warmUp(store);
      const stream = unique();
      const lot = events(3);
      proxy.freeze('answers');
      const before = proxy.sent();
      const appending = store.append(stream, 'no_stream', lot);
      await underWay(proxy, before);
      await vi.waitFor(async () => expect(await all(open().readStream(stream))).toHaveLength(3), 3_000);
      proxy.thaw();
      proxy.cut();
      // Either the store finds out by itself, or the caller resends; the stream is the same.
      const outcome = await appending.catch((error: unknown) => error);
      if (outcome instanceof Error) expect(outcome).toBeInstanceOf(OutcomeUnknown);
      expect(await store.append(stream, 'no_stream', lot)).toMatchObject({ revision: 2 });
      expect(ids(await all(open().readStream(stream)))).toEqual(ids(lot));
    }, 20_000);

    it('an append in progress without an exact expectation is never repeated', async () => {
      const { store, proxy } = await openBehindProxy({ deadlineMs: DEADLINE_MS });
      await warmUp(store);
      const stream = unique();
      proxy.freeze('answers');
      const before = proxy.sent();
      const appending = store.append(stream, 'any', [event()]);
      await underWay(proxy, before);
      await vi.waitFor(async () => expect(await all(open().readStream(stream))).toHaveLength(1), 3_000);
      proxy.cut();
      proxy.thaw();
      const outcome = await appending.catch((error: unknown) => error);
      if (outcome instanceof Error) expect(outcome).toBeInstanceOf(OutcomeUnknown);
      await store.append(unique(), 'no_stream', [event()]);
      expect(await all(open().readStream(stream))).toHaveLength(1);
    }, 20_000);

    it.each(['no_stream', 'any'] as const)(
      'an append at %s whose response is lost with the server is an unknown outcome and no refusal',
      async (expected) => {
        const { store, proxy } = await openBehindProxy({ deadlineMs: DEADLINE_MS });
        await warmUp(store);
        const stream = unique();
        const lot = events(2);
        proxy.freeze('answers');
        const before = proxy.sent();
        const appending = refusal(store.append(stream, expected, lot));
        await underWay(proxy, before);
        await vi.waitFor(async () => expect(await all(open().readStream(stream))).toHaveLength(2), 3_000);
        await proxy.refuse();
        proxy.thaw();
        expect(await appending).toBeInstanceOf(OutcomeUnknown);
        await proxy.accept();
        const again = () => store.append(stream, 'no_stream', lot);
        expect(await vi.waitFor(again, { timeout: 10_000, interval: 50 })).toMatchObject({ revision: 1 });
        expect(ids(await all(open().readStream(stream)))).toEqual(ids(lot));
      },
      20_000,
    );

    it('many appends under load are each stored once or not at all, and acknowledged ones are stored', async () => {
      const { store, proxy } = await openBehindProxy();
      const witness = open();
      await warmUp(store);
      const streams = Array.from({ length: 400 }, () => unique());
      let answered = 0;
      const appending = streams.map(async (stream) => {
        const outcome = await store.append(stream, 'no_stream', events(2)).catch((error: unknown) => error);
        answered += 1;
        if (answered % 100 === 0 && answered < 400) proxy.cut();
        return outcome;
      });
      const outcomes = await Promise.all(appending);
      const lengths = await Promise.all(
        streams.map(async (stream) => (await all(witness.readStream(stream))).length),
      );
      outcomes.forEach((outcome, n) => {
        if (!(outcome instanceof Error)) expect(lengths[n]).toBe(2);
        else if (outcome instanceof OutcomeUnknown) expect([0, 2]).toContain(lengths[n]);
        else {
          expect([StoreUnavailable, StoreBusy]).toContain(outcome.constructor);
          expect(lengths[n]).toBe(0);
        }
      });
    }, 30_000);
  });

  describe('when the server hangs', () => {
    it('an append has an unknown outcome within the deadline, a read fails, and both work later', async () => {
      const { store, proxy } = await openBehindProxy({ deadlineMs: DEADLINE_MS });
      await warmUp(store);
      const stream = unique();
      const lot = events(2);
      proxy.freeze('everything');
      const started = performance.now();
      const [append, read, head] = await Promise.all([
        refusal(store.append(stream, 'no_stream', lot)),
        refusal(all(store.readStream(stream))),
        refusal(store.head()),
      ]);
      expect(performance.now() - started).toBeLessThan(DEADLINE_MS + GRACE_MS);
      expect(append).toBeInstanceOf(OutcomeUnknown);
      expect([read, head]).toEqual([expect.any(StoreUnavailable), expect.any(StoreUnavailable)]);
      proxy.thaw();
      expect(await store.append(stream, 'no_stream', lot)).toMatchObject({ revision: 1 });
      expect(await store.append(stream, 1, [event()])).toMatchObject({ revision: 2 });
      expect(await all(store.readStream(stream))).toHaveLength(3);
    }, 30_000);

    it('the store closes, whatever is in progress', async () => {
      const { store, proxy } = await openBehindProxy({ deadlineMs: 60_000 });
      await warmUp(store);
      const following = new AbortController();
      const after = await store.head();
      const followed = Array.fromAsync(store.follow({ after, signal: following.signal }));
      proxy.freeze('everything');
      const appended = Promise.all(
        [1, 2, 3].map(() => refusal(store.append(unique(), 'no_stream', [event()]))),
      );
      const read = refusal(all(store.readStream(unique())));
      const began = performance.now();
      await store.close();
      expect(performance.now() - began).toBeLessThan(2_000 + GRACE_MS);
      following.abort();
      proxy.cut();
      for (const error of await appended) {
        expect([OutcomeUnknown, StoreUnavailable]).toContain((error as Error).constructor);
      }
      expect(await read).toBeInstanceOf(StoreUnavailable);
      expect(await followed).toEqual([]);
    }, 20_000);

    it('a follower continues afterwards', async () => {
      const { store, proxy } = await openBehindProxy();
      const prefix = unique();
      const after = await store.head();
      const writer = open();
      const lots = [events(3), events(4), events(5)] as const;
      await writer.append(`${prefix}-0`, 'no_stream', lots[0]);
      const batches = await followUntil(store, { after, prefixes: [prefix] }, async (taken) => {
        const seen = eventsIn(taken).length;
        if (seen === 3 || seen === 7) {
          proxy.freeze('everything');
          await writer.append(`${prefix}-${seen}`, 'no_stream', seen === 3 ? lots[1] : lots[2]);
          proxy.thaw();
          if (seen === 7) proxy.cut();
        }
        return seen === 12;
      });
      expect(ids(eventsIn(batches))).toEqual(ids(lots.flat()));
    }, 30_000);
  });

  describe('when the server cannot be reached', () => {
    it('nothing is written, every call fails, and every call works once the server is back', async () => {
      const { store, proxy } = await openBehindProxy({ deadlineMs: DEADLINE_MS });
      await proxy.refuse();
      const stream = unique();
      const lot = events(2);
      const outcomes = await Promise.all([
        refusal(store.append(stream, 'no_stream', lot)),
        refusal(store.append(stream, 'any', [event()])),
        refusal(all(store.readStream(stream))),
        refusal(store.head()),
      ]);
      expect(outcomes).toEqual(outcomes.map(() => expect.any(StoreUnavailable)));
      expect(await all(open().readStream(stream))).toEqual([]);
      await proxy.accept();
      const again = () => store.append(stream, 'no_stream', lot);
      expect(await vi.waitFor(again, { timeout: 10_000, interval: 50 })).toMatchObject({ revision: 1 });
      expect(await all(store.readStream(stream))).toHaveLength(2);
    }, 30_000);

    it('a follower waits for it', async () => {
      const { store, proxy } = await openBehindProxy();
      const stream = unique();
      const after = await store.head();
      await proxy.refuse();
      const following = followUntil(
        store,
        { after, prefixes: [stream] },
        (taken) => eventsIn(taken).length > 0,
      );
      await open().append(stream, 'no_stream', [event()]);
      await refusal(store.head());
      await proxy.accept();
      expect(eventsIn(await following)).toHaveLength(1);
    }, 30_000);
  });
};
