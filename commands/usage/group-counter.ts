import { v7 as uuid } from 'uuid';
import { HOUR } from '../../domain/kernel/time.ts';
import { type UsageEvent, usageEvents, usageStream } from '../../domain/usage/events.ts';
import {
  type EventStore,
  OutcomeUnknown,
  StoreBusy,
  StoreUnavailable,
  WrongExpectedRevision,
} from '../../event-store/port.ts';
import { type Clock, iso } from '../../platform/clock.ts';
import { apart } from '../../platform/spans.ts';
import { appendSafely, toNewEvents } from '../handle.ts';

/** The count could not be made durable in time (decisions: 2 s). The answer that it belongs to is not sent. */
export class CountNotDurable extends Error {}

/** What is counted: rows that begin with what they are of and the hour, and how two of the same are one. */
export interface Counted<Row> {
  keyOf(row: Row): string;
  plus(sum: Row | undefined, row: Row): Row;
  event(counts: Row[]): UsageEvent;
}

export interface GroupCounter<Row> {
  /** Resolves once the count is durable. @throws CountNotDurable */
  count(row: Row): Promise<void>;
  /** Writes what is waiting, then ends. */
  close(): Promise<void>;
}

/** All counts of a few milliseconds: one event, one append, one promise that all its requests share. */
interface Group<Row> {
  readonly openedAt: number;
  readonly counts: Map<string, Row>;
  answers: number;
  readonly durable: Promise<void>;
  resolve(): void;
  reject(reason: Error): void;
}

const LIMIT_MS = 2_000;
const AGAIN_MS = 50;
/** So many answers in one append are a crowd. */
const CROWD = 8;
const GATHER_MS = 2;

/**
 * Counts the answers of this process on streams of its own, one a boot and UTC day, by group commit: what comes while
 * one append is under way shares the next.
 */
export const createGroupCounter = <Row extends readonly [string, string, ...unknown[]]>(
  store: EventStore,
  clock: Clock,
  { keyOf, plus, event }: Counted<Row>,
): GroupCounter<Row> => {
  let open: Group<Row> | null = null;
  let flushing: Promise<void> | null = null;
  let bootId = uuid();
  let revisions = new Map<string, number>();
  let gathering: { readonly enough: number; resolve(): void } | null = null;
  const watched = new Set<Group<Row>>();

  // One timer for all groups: whoever waits longer is told so, even while an append hangs.
  const watch = setInterval(() => {
    const now = performance.now();
    for (const group of watched) {
      if (now - group.openedAt < LIMIT_MS) continue;
      watched.delete(group);
      // Its answers say that they are not counted: it must not be written later, nor joined.
      if (group === open) open = null;
      group.reject(new CountNotDurable('a count was not durable in time'));
    }
  }, 100);
  watch.unref();

  const newGroup = (): Group<Row> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const group: Group<Row> = {
      openedAt: performance.now(),
      counts: new Map(),
      answers: 0,
      durable: promise,
      resolve,
      reject,
    };
    // Whoever counts awaits the promise; a group that nobody awaits any more must not end the process.
    promise.catch(() => undefined);
    watched.add(group);
    return group;
  };

  const appendGroup = async (group: Group<Row>): Promise<void> => {
    const byDay = Map.groupBy(group.counts.values(), ([, hour]) => hour.slice(0, 10));
    for (const [day, counts] of byDay) {
      const stream = usageStream(bootId, day);
      const events = toNewEvents(usageEvents, [event(counts)], {
        correlationId: bootId,
        causationId: bootId,
        at: clock.now(),
      });
      const expected = revisions.get(stream) ?? 'no_stream';
      const { revision } = await appendSafely(store, stream, expected, events, () => watched.has(group));
      revisions.set(stream, revision);
      // What is written is not written again, should the next day's append fail.
      for (const count of counts) group.counts.delete(keyOf(count));
    }
  };

  const write = async (group: Group<Row>): Promise<void> => {
    for (;;) {
      try {
        await appendGroup(group);
        group.resolve();
        break;
      } catch (error) {
        if (error instanceof OutcomeUnknown || error instanceof WrongExpectedRevision) startAfresh();
        const passing = error instanceof StoreUnavailable || error instanceof StoreBusy;
        if (!passing || performance.now() - group.openedAt >= LIMIT_MS) {
          group.reject(new CountNotDurable(String(error), { cause: error }));
          break;
        }
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
    watched.delete(group);
  };

  /** Where the streams stand is not known any more: go on with new ones. */
  const startAfresh = (): void => {
    bootId = uuid();
    revisions = new Map();
  };

  const flush = async (): Promise<void> => {
    let crowd = 0;
    while (open) {
      // In a crowd an append costs more than the answers that share it: a little later, more of them do. Half of the
      // crowd is enough, so that it is answered while the other half is being counted.
      if (crowd >= CROWD) await gather(open, crowd / 2);
      const group: Group<Row> = open;
      open = null;
      await write(group);
      crowd = group.answers + (waiting()?.answers ?? 0);
    }
    flushing = null;
  };

  /** For many requests, and so in the trace of none. */
  const startFlush = (): Promise<void> => new Promise<void>((resolve) => setImmediate(resolve)).then(flush);

  /** What has come meanwhile. */
  const waiting = (): Group<Row> | null => open;

  /** Until so many answers are in the group, or a short time is over. */
  const gather = async (group: Group<Row>, enough: number): Promise<void> => {
    if (group.answers >= enough) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, GATHER_MS);
      gathering = {
        enough,
        resolve: () => {
          clearTimeout(timer);
          resolve();
        },
      };
    });
    gathering = null;
  };

  return {
    count: (row) => {
      open ??= newGroup();
      const key = keyOf(row);
      open.counts.set(key, plus(open.counts.get(key), row));
      open.answers += 1;
      if (gathering && open.answers >= gathering.enough) gathering.resolve();
      // After this turn of the event loop, so that requests read together are counted together.
      flushing ??= apart(startFlush);
      return open.durable;
    },
    close: async () => {
      while (flushing) await flushing;
      clearInterval(watch);
    },
  };
};

/** The UTC hour of an instant, `YYYY-MM-DDTHH`; the last one is remembered. */
export const hourOf = (() => {
  let known = { number: -1, text: '' };
  return (at: number): string => {
    const number = Math.floor(at / HOUR);
    if (number !== known.number) known = { number, text: iso(at).slice(0, 13) };
    return known.text;
  };
})();
