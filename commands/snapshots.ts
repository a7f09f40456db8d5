import { readEvent } from '../domain/kernel/events.ts';
import type { EventStore, RecordedEvent } from '../event-store/port.ts';
import { type Aggregate, type Loaded, load } from './handle.ts';

/** A hot stream's kind: its fold can perhaps be written down as an event to start from. */
export interface SnapshottedAggregate<
  State,
  Command,
  Event extends { type: string; data: object },
  R extends string,
> extends Aggregate<State, Command, Event, R> {
  /** Left out where the stream stays short. */
  snapshot?(state: State): Event;
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

/** Reads back to the newest snapshot and folds from there. */
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
  const snapshotType = aggregate.snapshot(decider.initial).type;
  const back: RecordedEvent[] = [];
  for await (const stored of store.readStream(stream, { direction: 'backwards' })) {
    back.push(stored);
    if (stored.type === snapshotType) break;
    if (back.length === MOST_READ_BACK) return load(store, aggregate, stream);
  }
  let state = decider.initial;
  for (const stored of back.reverse()) {
    const event = readEvent(schemas, stored) as Event | null;
    if (event) state = decider.evolve(state, event);
  }
  return { state, revision: back.at(-1)?.revision ?? null };
};
