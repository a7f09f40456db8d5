import { readEvent } from '../domain/kernel/events.ts';
import type { EventStore, RecordedEvent } from '../event-store/port.ts';
import { approximateBytes } from '../platform/size.ts';
import { type Aggregate, type Loaded, load } from './handle.ts';

/** A hot stream's kind: its fold can perhaps be written down as an event to start from. */
export interface SnapshottedAggregate<
  State,
  Command,
  Event extends { type: string; data: object },
  R extends string,
> extends Aggregate<State, Command, Event, R> {
  /** Left out where the stream stays short. Several events where one append cannot hold all: see `partOf`. */
  snapshot?(state: State): Event | readonly Event[];
  /** Which part an event is of a snapshot in parts; null: none. To a fold that has come so far, a part changes nothing. */
  partOf?(event: Event): { readonly part: number; readonly parts: number } | null;
  /** How much a snapshot of the state holds, in the measure of events. */
  sizeOf?(state: State): number;
}

/** Events between two snapshots of a small state; of a large one, about as many as it holds. */
const SNAPSHOT_EVERY = 1_000;

/** Doubled up to the state's size, so that all snapshots together cost about what the events cost. */
export const snapshotEvery = (size: number): number =>
  SNAPSHOT_EVERY * 2 ** Math.max(0, Math.floor(Math.log2(size / SNAPSHOT_EVERY)));

/** Where no snapshot is found among so many events, they are not held in memory: the stream is folded from its start. */
const MOST_READ_BACK = 50_000;

/** The same by what they hold, about. */
const MOST_BYTES_READ_BACK = 96 * 1_048_576;

/** Reads back to the newest snapshot that is whole, and folds from there. */
export const loadFromSnapshot = async <
  State,
  Command,
  Event extends { type: string; data: object },
  R extends string,
>(
  store: EventStore,
  aggregate: SnapshottedAggregate<State, Command, Event, R>,
  stream: string,
): Promise<Loaded<State>> => {
  const { schemas, decider } = aggregate;
  if (!aggregate.snapshot) return load(store, aggregate, stream);
  const isBeginning = snapshotSearch(aggregate);
  const back: RecordedEvent[] = [];
  let bytes = 0;
  for await (const stored of store.readStream(stream, { direction: 'backwards' })) {
    back.push(stored);
    if (isBeginning(stored)) break;
    bytes += approximateBytes(stored);
    if (back.length === MOST_READ_BACK || bytes > MOST_BYTES_READ_BACK) return load(store, aggregate, stream);
  }
  let state = decider.initial;
  for (const stored of back.reverse()) {
    const event = readEvent(schemas, stored) as Event | null;
    if (event) state = decider.evolve(state, event);
  }
  return { state, revision: back.at(-1)?.revision ?? null };
};

/** Whether an event begins a whole snapshot, asked of one event after the other, backwards. */
const snapshotSearch = <State, Command, Event extends { type: string; data: object }, R extends string>({
  schemas,
  decider,
  snapshot,
  partOf,
}: SnapshottedAggregate<State, Command, Event, R>): ((stored: RecordedEvent) => boolean) => {
  const whole = snapshot === undefined ? [] : eventsOf(snapshot(decider.initial));
  /** The part that comes next where those behind it are all there. */
  let expected = 0;
  return (stored) => {
    if (stored.type === whole[0]?.type) return true;
    const event = partOf === undefined ? null : (readEvent(schemas, stored) as Event | null);
    const found = event === null ? null : (partOf?.(event) ?? null);
    const goesOn = found !== null && (found.part === found.parts || found.part === expected);
    expected = goesOn ? found.part - 1 : 0;
    return goesOn && found.part === 1;
  };
};

/** A snapshot as events, in their order. */
export const eventsOf = <Event>(snapshot: Event | readonly Event[]): readonly Event[] =>
  Array.isArray(snapshot) ? snapshot : [snapshot as Event];
