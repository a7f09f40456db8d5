import { describe, expect, it } from 'vitest';
import { StreamExpired, WrongExpectedRevision } from '../../../event-store/port.ts';
import { isExpired } from '../../support/is-expired.ts';
import { all, event, events, eventsIn, followUntil, refusal, type SuiteContext, unique } from './context.ts';

const NOON = Date.parse('2031-05-05T12:00:00.000Z');
const expiringEvent = () => event({ metadata: { expires_at: new Date(NOON).toISOString() } });

export const retention = ({ open }: SuiteContext): void => {
  describe('a stream', () => {
    it('counts as expired once it is deleted for ever, and not while it is only hidden or truncated', async () => {
      const store = open({ now: () => NOON });
      const [missing, hidden, dropped, deleted] = [unique(), unique(), unique(), unique()];
      await store.append(hidden, 'no_stream', [expiringEvent()]);
      await store.append(dropped, 'no_stream', [event()]);
      await store.truncateBefore(dropped, 1);
      await store.append(deleted, 'no_stream', [event()]);
      expect(await isExpired(store, deleted)).toBe(false);
      await store.expire(deleted, 0);
      const are = await Promise.all(
        [missing, hidden, dropped, deleted].map((stream) => isExpired(store, stream)),
      );
      expect(are).toEqual([false, false, false, true]);
    });

    it('begins again at revision 0 once its name is forgotten; a store that cannot forget still refuses it', async () => {
      let now = NOON;
      const store = open({ now: () => now });
      const stream = unique();
      await store.append(stream, 'no_stream', [event(), event()]);
      await store.expire(stream, 1);
      now += 1;
      const forgotten = await store.forgetNames({
        prefixes: [stream],
        before: now,
        successorOf: () => null,
      });
      const again = store.append(stream, 'no_stream', [event()]);
      if (forgotten === 0) await expect(again).rejects.toBeInstanceOf(StreamExpired);
      else expect((await again).revision).toBe(0);
      await expect(store.append(stream, 1, [event()])).rejects.toThrow();
    });
  });

  describe('an event past its expires_at', () => {
    it("is hidden from that instant on, by the reader's clock", async () => {
      let now = NOON - 1;
      const store = open({ now: () => now });
      const stream = unique();
      await store.append(stream, 'no_stream', [expiringEvent(), event(), expiringEvent()]);
      expect(await all(store.readStream(stream))).toHaveLength(3);
      now = NOON;
      expect((await all(store.readStream(stream))).map(({ revision }) => revision)).toEqual([1]);
    });

    it("still counts: the stream's revisions and refusals include it", async () => {
      const store = open({ now: () => NOON });
      const stream = unique();
      await store.append(stream, 'no_stream', [expiringEvent(), expiringEvent()]);
      expect(await refusal(store.append(stream, 'no_stream', [event()]))).toMatchObject({ actual: 1 });
      expect(await store.append(stream, 1, [event()])).toMatchObject({ revision: 2 });
    });

    it('does not use up the limit of a read', async () => {
      const store = open({ now: () => NOON });
      const stream = unique();
      await store.append(stream, 'no_stream', [
        event(),
        event(),
        expiringEvent(),
        expiringEvent(),
        event(),
        expiringEvent(),
      ]);
      const read = async (direction: 'forwards' | 'backwards') =>
        (await all(store.readStream(stream, { direction, limit: 2 }))).map(({ revision }) => revision);
      expect([await read('forwards'), await read('backwards')]).toEqual([
        [0, 1],
        [4, 1],
      ]);
    });

    it('is skipped by a follower, whose position moves past it', async () => {
      const store = open({ now: () => NOON });
      const stream = unique();
      const after = await store.head();
      const { position } = await store.append(stream, 'no_stream', [event(), expiringEvent()]);
      const reached = (batches: readonly { position: bigint }[]) =>
        (batches.at(-1)?.position ?? -1n) >= (position ?? 0n);
      const batches = await followUntil(store, { after, prefixes: [stream] }, reached);
      expect(eventsIn(batches).map(({ revision }) => revision)).toEqual([0]);
    });

    it('is read when expired events are requested, in either direction', async () => {
      const store = open({ now: () => NOON });
      const stream = unique();
      await store.append(stream, 'no_stream', [expiringEvent(), event(), expiringEvent()]);
      const read = async (options: object) =>
        (await all(store.readStream(stream, { includeExpired: true, ...options }))).map((e) => e.revision);
      expect(await read({})).toEqual([0, 1, 2]);
      expect(await read({ direction: 'backwards', limit: 1 })).toEqual([2]);
      expect(await read({ from: 2, limit: 1 })).toEqual([2]);
    });

    it('reaches a follower that requests expired events, as long as it exists', async () => {
      const store = open({ now: () => NOON });
      const stream = unique();
      const after = await store.head();
      const { position } = await store.append(stream, 'no_stream', [
        expiringEvent(),
        event(),
        expiringEvent(),
      ]);
      const reached = (batches: readonly { position: bigint }[]) =>
        (batches.at(-1)?.position ?? -1n) >= (position ?? 0n);
      const options = { after, prefixes: [stream], includeExpired: true };
      const batches = await followUntil(store, options, reached);
      expect(eventsIn(batches).map(({ revision }) => revision)).toEqual([0, 1, 2]);
    });
  });

  describe('an expired stream', () => {
    it('reads as empty and refuses every append for ever', async () => {
      const store = open();
      const stream = unique();
      const lot = events(3);
      await store.append(stream, 'no_stream', lot);
      await store.expire(stream, 2);
      expect(await all(store.readStream(stream))).toEqual([]);
      expect(await all(store.readStream(stream, { direction: 'backwards', limit: 1 }))).toEqual([]);
      for (const expected of ['any', 'no_stream', 'stream_exists', 2, 3] as const) {
        expect(await refusal(open().append(stream, expected, [event()]))).toBeInstanceOf(StreamExpired);
      }
    });

    it('may be expired again, and so may a stream that never existed', async () => {
      const store = open();
      const stream = unique();
      await store.append(stream, 'no_stream', events(2));
      await store.expire(stream, 1);
      await store.expire(stream, 1);
      await store.truncateBefore(stream, 1);
      await store.expire(unique(), 7);
    });

    it('is not expired when the stream has grown beyond the given revision', async () => {
      const store = open();
      const stream = unique();
      await store.append(stream, 'no_stream', events(3));
      const error = await refusal(store.expire(stream, 1));
      expect(error).toBeInstanceOf(WrongExpectedRevision);
      expect(error).toMatchObject({ stream, actual: 2 });
      expect(await store.append(stream, 2, [event()])).toMatchObject({ revision: 3 });
    });

    it('either contains a concurrent append and stays, or refuses it', async () => {
      const [store, other] = [open(), open()];
      for (let round = 0; round < 5; round += 1) {
        const streams = Array.from({ length: 400 }, () => unique());
        await Promise.all(streams.map((stream) => store.append(stream, 'no_stream', [event()])));
        // In different orders, so that they race in every way.
        const expiring = Promise.allSettled(streams.toReversed().map((stream) => other.expire(stream, 0)));
        const appending = Promise.allSettled(streams.map((stream) => store.append(stream, 0, [event()])));
        const expired = (await expiring).toReversed();
        const appended = await appending;
        expect(streams.filter((_, n) => expired[n]?.status === appended[n]?.status)).toEqual([]);
      }
    });

    it('leaves neighbouring streams as they are', async () => {
      const store = open();
      const stream = unique();
      await store.append(stream, 'no_stream', [event()]);
      await store.append(`${stream}-2`, 'no_stream', [event()]);
      await store.expire(stream, 0);
      expect(await all(store.readStream(`${stream}-2`))).toHaveLength(1);
    });
  });

  describe('a truncated stream', () => {
    it('has lost its earlier events and continues', async () => {
      const store = open();
      const stream = unique();
      await store.append(stream, 'no_stream', events(5));
      await store.truncateBefore(stream, 3);
      await store.truncateBefore(stream, 3);
      await store.append(stream, 4, [event()]);
      const revisions = (await all(store.readStream(stream))).map(({ revision }) => revision);
      expect(revisions).toEqual([3, 4, 5]);
      expect(await all(store.readStream(stream, { direction: 'backwards', from: 3 }))).toHaveLength(1);
      expect(await refusal(store.append(stream, 'no_stream', [event()]))).toMatchObject({ actual: 5 });
    });

    it('never recovers truncated events', async () => {
      const store = open();
      const stream = unique();
      await store.append(stream, 'no_stream', events(5));
      await Promise.all([1, 4, 2, 3].map((revision) => store.truncateBefore(stream, revision)));
      expect((await all(store.readStream(stream))).map(({ revision }) => revision)).toEqual([4]);
      await store.truncateBefore(stream, 0);
      expect((await all(store.readStream(stream))).map(({ revision }) => revision)).toEqual([4]);
    });

    it('may have lost every event, and shows later ones', async () => {
      const store = open();
      const stream = unique();
      await store.append(stream, 'no_stream', events(3));
      await store.truncateBefore(stream, 1_000);
      await store.truncateBefore(stream, 1_000);
      expect(await all(store.readStream(stream))).toEqual([]);
      expect(await refusal(store.append(stream, 'no_stream', [event()]))).toMatchObject({ actual: 2 });
      expect(await store.append(stream, 2, [event()])).toMatchObject({ revision: 3 });
      expect((await all(store.readStream(stream))).map(({ revision }) => revision)).toEqual([3]);
    });

    it('need not exist', async () => {
      const store = open();
      const stream = unique();
      await store.truncateBefore(stream, 5);
      expect(await store.append(stream, 'no_stream', [event()])).toMatchObject({ revision: 0 });
      expect(await all(store.readStream(stream))).toHaveLength(1);
    });
  });
};
