import { describe, expect, it } from 'vitest';
import { type EventStore, StreamExpired, WrongExpectedRevision } from '../../../event-store/port.ts';
import { all, event, events, refusal, type SuiteContext, unique } from './context.ts';

const EVENTS = 2_410;

/** Appends events in groups and alone. @returns the stream, whose last revision is `EVENTS - 1` */
const fill = async (store: EventStore): Promise<string> => {
  const stream = unique();
  for (let from = 0; from < EVENTS - 10; from += 400) {
    await store.append(stream, from === 0 ? 'no_stream' : from - 1, events(400));
  }
  for (let from = EVENTS - 10; from < EVENTS; from += 1) await store.append(stream, from - 1, [event()]);
  return stream;
};

export const longStreams = ({ open }: SuiteContext): void => {
  describe('a stream of thousands of events', () => {
    it('numbers them all, and refuses appends at other revisions than its last', async () => {
      const store = open();
      const stream = await fill(store);
      const revisions = (await all(store.readStream(stream))).map(({ revision }) => revision);
      expect(revisions).toEqual(Array.from({ length: EVENTS }, (_, n) => n));
      for (const expected of ['no_stream', 2_000, EVENTS - 2, EVENTS] as const) {
        const error = await refusal(store.append(stream, expected, [event()]));
        expect(error).toBeInstanceOf(WrongExpectedRevision);
        expect(error).toMatchObject({ actual: EVENTS - 1 });
      }
      const last = [event(), event()];
      expect(await store.append(stream, EVENTS - 1, last)).toMatchObject({ revision: EVENTS + 1 });
      expect(await store.append(stream, EVENTS - 1, last)).toMatchObject({ revision: EVENTS + 1 });
      expect(await store.append(stream, 'any', [event()])).toMatchObject({ revision: EVENTS + 2 });
    });

    it('is expired at its last revision alone', async () => {
      const store = open();
      const stream = await fill(store);
      expect(await refusal(store.expire(stream, EVENTS - 2))).toMatchObject({ actual: EVENTS - 1 });
      expect(await store.append(stream, EVENTS - 1, [event()])).toMatchObject({ revision: EVENTS });
      await store.expire(stream, EVENTS);
      expect(await all(store.readStream(stream))).toEqual([]);
      expect(await refusal(store.append(stream, EVENTS, [event()]))).toBeInstanceOf(StreamExpired);
    });

    it('keeps its number when it has lost every event', async () => {
      const store = open();
      const stream = await fill(store);
      await store.truncateBefore(stream, EVENTS);
      expect(await all(store.readStream(stream))).toEqual([]);
      expect(await refusal(store.append(stream, 'no_stream', [event()]))).toMatchObject({
        actual: EVENTS - 1,
      });
      expect(await store.append(stream, EVENTS - 1, [event()])).toMatchObject({ revision: EVENTS });
      expect((await all(store.readStream(stream))).map(({ revision }) => revision)).toEqual([EVENTS]);
    });
  });
};
