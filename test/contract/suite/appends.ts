import { describe, expect, it } from 'vitest';
import { inChunks } from '../../../domain/kernel/chunks.ts';
import {
  AppendTooLarge,
  MAX_APPEND_BYTES,
  type NewEvent,
  StoreBusy,
  WrongExpectedRevision,
} from '../../../event-store/port.ts';
import { all, event, events, ids, refusal, type SuiteContext, unique } from './context.ts';

export const appends = ({ open }: SuiteContext): void => {
  describe('an append', () => {
    it('begins a stream at revision 0 and numbers on from there', async () => {
      const store = open();
      const stream = unique();
      const first = await store.append(stream, 'no_stream', [event()]);
      const second = await store.append(stream, 0, events(3));
      expect([first.revision, second.revision]).toEqual([0, 3]);
      expect((await all(store.readStream(stream))).map(({ revision }) => revision)).toEqual([0, 1, 2, 3]);
    });

    it('returns the position of its last event, and positions rise', async () => {
      const store = open();
      const stream = unique();
      const first = await store.append(stream, 'no_stream', events(3));
      const second = await store.append(stream, 2, events(2));
      const read = await all(store.readStream(stream));
      expect([first.position, second.position]).toEqual([read[2]?.position, read[4]?.position]);
      const positions = read.map(({ position }) => position);
      expect(positions.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(positions);
      expect(new Set(positions).size).toBe(5);
    });

    it('that expects no stream is refused with the current revision where one exists', async () => {
      const store = open();
      const stream = unique();
      await store.append(stream, 'no_stream', events(3));
      const error = await refusal(store.append(stream, 'no_stream', [event()]));
      expect(error).toBeInstanceOf(WrongExpectedRevision);
      expect(error).toMatchObject({ stream, actual: 2 });
    });

    it.each([0, 1, 3, 100])(
      'at revision %i is refused with the current revision where that is 2',
      async (expected) => {
        const store = open();
        const stream = unique();
        await store.append(stream, 'no_stream', events(3));
        const error = await refusal(store.append(stream, expected, [event()]));
        expect(error).toBeInstanceOf(WrongExpectedRevision);
        expect(error).toMatchObject({ stream, actual: 2 });
        expect(await all(store.readStream(stream))).toHaveLength(3);
      },
    );

    it.each([0, 5, 'stream_exists' as const])(
      'at %s is refused where there is no stream',
      async (expected) => {
        const store = open();
        const stream = unique();
        const error = await refusal(store.append(stream, expected, [event()]));
        expect(error).toBeInstanceOf(WrongExpectedRevision);
        expect(error).toMatchObject({ stream, actual: null });
      },
    );

    it('that expects any stream, or an existing one, continues at its current revision', async () => {
      const store = open();
      const stream = unique();
      expect(await store.append(stream, 'any', events(2))).toMatchObject({ revision: 1 });
      expect(await store.append(stream, 'any', events(2))).toMatchObject({ revision: 3 });
      expect(await store.append(stream, 'stream_exists', [event()])).toMatchObject({ revision: 4 });
    });

    it('at one revision succeeds for one of many writers, and the others receive the current revision', async () => {
      const stores = [open(), open()];
      const stream = unique();
      await stores[0]?.append(stream, 'no_stream', [event()]);
      const tries = Array.from({ length: 20 }, (_, n) => stores[n % 2]?.append(stream, 0, [event()]));
      const outcomes = await Promise.allSettled(tries);
      const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
      expect(refused).toHaveLength(19);
      for (const { reason } of refused) expect(reason).toMatchObject({ name: 'Error', stream, actual: 1 });
    });

    it('of many events to one stream from several callers stays whole and in order', async () => {
      const store = open();
      const stream = unique();
      const lots = Array.from({ length: 12 }, () => events(25));
      await Promise.all(lots.map((lot) => store.append(stream, 'any', lot)));
      const stored = ids(await all(store.readStream(stream)));
      expect(stored).toHaveLength(300);
      for (const lot of lots) {
        const at = stored.indexOf(lot[0]?.id ?? '');
        expect(stored.slice(at, at + 25)).toEqual(ids(lot));
      }
    });

    it('to many streams at once from several callers succeeds in each', async () => {
      const store = open();
      const streams = Array.from({ length: 300 }, () => unique());
      await Promise.all(streams.map((stream) => store.append(stream, 'no_stream', events(2))));
      const lengths = await Promise.all(
        streams.map(async (stream) => (await all(store.readStream(stream))).length),
      );
      expect(new Set(lengths)).toEqual(new Set([2]));
    });
  });

  describe('ten thousand appends at once', () => {
    it('end each as stored or as refused, and one event has one outcome', async () => {
      const store = open({ deadlineMs: 20_000 });
      const stream = unique();
      const outcomes = await Promise.all(
        Array.from({ length: 10_000 }, (_, n) =>
          store.append(`${stream}-${n % 2_500}`, 'any', [event()]).catch((error: unknown) => error),
        ),
      );
      const failed = outcomes.filter((outcome) => outcome instanceof Error);
      for (const error of failed) expect(error).toBeInstanceOf(StoreBusy);
      const streams = Array.from({ length: 2_500 }, (_, n) => `${stream}-${n}`);
      let stored = 0;
      for (const lot of inChunks(streams, 50)) {
        const read = await Promise.all(lot.map((one) => all(store.readStream(one))));
        stored += read.flat().length;
      }
      expect(stored).toBe(outcomes.length - failed.length);
    }, 60_000);
  });

  describe('a resend', () => {
    it.each(['no_stream' as const, 2])('at the expectation %s returns the first result', async (expected) => {
      const store = open();
      const stream = unique();
      if (expected === 2) await store.append(stream, 'no_stream', events(3));
      const lot = events(3);
      const first = await store.append(stream, expected, lot);
      const again = await store.append(stream, expected, lot);
      expect(again.revision).toBe(first.revision);
      expect([null, first.position]).toContain(again.position);
      expect(ids(await all(store.readStream(stream))).slice(-3)).toEqual(ids(lot));
    });

    it('is idempotent from another process and after others have appended', async () => {
      const stream = unique();
      const lot = events(2);
      const first = await open().append(stream, 'no_stream', lot);
      await open().append(stream, 1, events(4));
      const again = await open().append(stream, 'no_stream', lot);
      expect(again.revision).toBe(first.revision);
      expect(await all(open().readStream(stream))).toHaveLength(6);
    });

    it('during the first try stores the events once', async () => {
      const store = open();
      const stream = unique();
      const lot = events(3);
      const tries = Array.from({ length: 8 }, () => store.append(stream, 'no_stream', lot));
      for (const { revision } of await Promise.all(tries)) expect(revision).toBe(2);
      expect(ids(await all(store.readStream(stream)))).toEqual(ids(lot));
    });

    it('is refused when only a part of it has been stored', async () => {
      const store = open();
      const stream = unique();
      const [known, fresh] = [event(), event()];
      await store.append(stream, 'no_stream', [known]);
      for (const mixed of [
        [known, fresh],
        [fresh, known],
      ]) {
        expect(await refusal(store.append(stream, 'no_stream', mixed))).toBeInstanceOf(WrongExpectedRevision);
      }
      const atAny = store.append(stream, 'any', [known, fresh]);
      expect(await refusal(atAny)).toBeInstanceOf(WrongExpectedRevision);
      expect(ids(await all(store.readStream(stream)))).toEqual([known.id]);
    });
  });

  describe('an append that is never valid', () => {
    it('is over 1 MiB, counted over all its events; up to that it is stored', async () => {
      const store = open();
      const stream = unique();
      const half = event({ data: { pad: 'é'.repeat(MAX_APPEND_BYTES / 4 - 100) } });
      const rest = MAX_APPEND_BYTES - 2 * bytes(half);
      const full = [
        half,
        event({ data: { pad: `${(half.data as { pad: string }).pad}${'x'.repeat(rest)}` } }),
      ];
      const size = full.reduce((sum, each) => sum + bytes(each), 0);
      expect(size).toBe(MAX_APPEND_BYTES);
      const [a, b] = full as [typeof half, typeof half];
      const over = [a, { ...b, data: { ...b.data, more: 1 } }];
      expect(await refusal(store.append(stream, 'no_stream', over))).toBeInstanceOf(AppendTooLarge);
      expect(await store.append(stream, 'no_stream', full)).toMatchObject({ revision: 1 });
      expect(await all(store.readStream(stream))).toHaveLength(2);
    });

    it.each([
      ['empty', unique(), []],
      ['with an id that is no UUID', unique(), [event({ id: 'one' })]],
      ['with one id twice', unique(), [event({ id: ONE }), event({ id: ONE })]],
      ["with a type of the server's own", unique(), [event({ type: '$metadata' })]],
      ["to a stream of the server's own", '$streams', [event()]],
      ['to no stream', '', [event()]],
      ['with what JSON cannot hold', unique(), [event({ data: { big: 1n } })]],
    ])('is %s', async (_, stream, list) => {
      const store = open();
      expect(await refusal(store.append(stream, 'any', list))).toBeInstanceOf(TypeError);
      expect(await store.append(unique(), 'no_stream', [event()])).toMatchObject({ revision: 0 });
    });
  });
};

const ONE = '0191e0a0-0000-7000-8000-000000000001';

/** As EventStoreDB 24.10 counts them. */
const bytes = ({ type, data, metadata }: NewEvent): number =>
  Buffer.byteLength(JSON.stringify(data)) + Buffer.byteLength(JSON.stringify(metadata)) + 2 * type.length;
