/**
 * An event store in memory that answers late, wrongly or not at all, by the test's random numbers. For fake timers.
 */
import {
  type Appended,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  OutcomeUnknown,
  type Position,
  type RecordedEvent,
  StoreBusy,
  StoreUnavailable,
  serialiseAppend,
  WrongExpectedRevision,
} from '../../event-store/port.ts';

/** The fate of one append. Times in milliseconds. */
export type Fate =
  | { readonly is: 'taken'; readonly landsIn: number; readonly answersIn: number }
  /** The answer is lost: the append may land before or after that, or never (null). */
  | { readonly is: 'unknown'; readonly landsIn: number | null; readonly answersIn: number }
  | { readonly is: 'refused'; readonly as: 'busy' | 'unavailable' };

export const STEADY: Fate = { is: 'taken', landsIn: 1, answersIn: 2 };

export const unsteadyStore = (fateOf: () => Fate, concurrentCommits = 1) => {
  const streams = new Map<string, RecordedEvent[]>();
  let position = 0n;
  let appends = 0;

  /** As both stores do: all or nothing, at an exact revision, the same ids at the same expectation once. */
  const land = (stream: string, expected: ExpectedRevision, events: readonly NewEvent[]): Appended => {
    const there = streams.get(stream) ?? [];
    const at = expected === 'no_stream' ? 0 : expected === 'any' ? there.length : Number(expected) + 1;
    const isRepeat = events.every((event, n) => there[at + n]?.id === event.id);
    if (!isRepeat) {
      if (at !== there.length) throw new WrongExpectedRevision(stream, there.length - 1);
      for (const event of events) {
        position += 1n;
        there.push({ ...event, stream, revision: there.length, position: position as Position });
      }
      streams.set(stream, there);
    }
    return { revision: at + events.length - 1, position: position as Position };
  };

  const later = <T>(ms: number, work: () => T): Promise<T> =>
    new Promise((resolve, reject) => {
      setTimeout(() => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      }, ms);
    });

  const append: EventStore['append'] = async (stream, expected, events) => {
    appends += 1;
    serialiseAppend(stream, events);
    const fate = fateOf();
    if (fate.is === 'refused') {
      throw fate.as === 'busy' ? new StoreBusy('busy') : new StoreUnavailable('away');
    }
    const landed = fate.landsIn === null ? null : later(fate.landsIn, () => land(stream, expected, events));
    landed?.catch(() => undefined);
    if (fate.is === 'taken' && landed !== null) {
      const [appended] = await Promise.all([landed, later(fate.answersIn, () => undefined)]);
      return appended;
    }
    return later(fate.answersIn, () => {
      throw new OutcomeUnknown('no answer in time');
    });
  };

  const store = {
    concurrentCommits,
    append,
    readStream: async function* (stream: string, { from = 0, limit = Number.POSITIVE_INFINITY } = {}) {
      yield* (streams.get(stream) ?? []).slice(from, from + limit);
    },
  } as unknown as EventStore;
  return {
    store,
    appends: () => appends,
    events: (): RecordedEvent[] => [...streams.values()].flat(),
  };
};
