import { readEvent } from '../domain/kernel/events.ts';
import { approximateBytes, type EventStore, type RecordedEvent } from '../event-store/port.ts';
import { type Aggregate, type DomainEvent, evolveStored, type Loaded, load } from './handle.ts';

/** An aggregate whose state can be stored as a snapshot event. */
export interface SnapshottedAggregate<State, Command, Event extends DomainEvent, R extends string>
  extends Aggregate<State, Command, Event, R> {
  /** Omitted for short streams. Returns several events if one append cannot hold the state: see `partOf`. */
  snapshot?(state: State): Event | readonly Event[];
  /** Returns an event's part number within a snapshot in parts; null if it is none. Folding a part must change nothing. */
  partOf?(event: Event): { readonly part: number; readonly parts: number } | null;
  /** Returns the size of a state's snapshot, in number of comparable events. */
  sizeOf?(state: State): number;
}

/** Events between two snapshots of a small state; of a large one, about as many as it holds. */
const SNAPSHOT_EVERY = 1_000;

/** Doubles with the state's size, so that all snapshots together cost about as much as the events. */
export const snapshotEvery = (size: number): number =>
  SNAPSHOT_EVERY * 2 ** Math.max(0, Math.floor(Math.log2(size / SNAPSHOT_EVERY)));

/** Limits of the backward search for a snapshot, which holds events in memory; beyond them the stream is folded forward. */
const MAX_EVENTS_READ_BACK = 50_000;
const MAX_BYTES_READ_BACK = 96 * 1_048_576;

/** Reads back to the newest complete snapshot and folds from there. */
export async function loadFromSnapshot<State, Command, Event extends DomainEvent, R extends string>(
  store: EventStore,
  aggregate: SnapshottedAggregate<State, Command, Event, R>,
  stream: string,
): Promise<Loaded<State>> {
  if (!aggregate.snapshot) return load(store, aggregate, stream);
  const isBeginning = snapshotSearch(aggregate);
  const back: RecordedEvent[] = [];
  let bytes = 0;
  for await (const stored of store.readStream(stream, { direction: 'backwards' })) {
    back.push(stored);
    if (isBeginning(stored)) break;
    bytes += approximateBytes(stored);
    if (back.length === MAX_EVENTS_READ_BACK || bytes > MAX_BYTES_READ_BACK)
      return load(store, aggregate, stream);
  }
  return fold(aggregate, { state: aggregate.decider.initial, revision: null }, back.reverse());
}

/**
 * Folds the events after a known state, which may be old: begins with the newest snapshot instead where it is nearer to the
 * stream's end, or where the events between were truncated.
 */
export async function loadSince<State, Command, Event extends DomainEvent, R extends string>(
  store: EventStore,
  aggregate: SnapshottedAggregate<State, Command, Event, R>,
  stream: string,
  known: Loaded<State>,
): Promise<Loaded<State>> {
  if (!aggregate.snapshot) return load(store, aggregate, stream, known);
  const from = known.revision === null ? 0 : known.revision + 1;
  const limit = snapshotEvery(aggregate.sizeOf?.(known.state) ?? 0);
  const since: RecordedEvent[] = [];
  for await (const stored of store.readStream(stream, { from, limit })) since.push(stored);
  const isWhole = since.length < limit && (since[0]?.revision ?? from) === from;
  return isWhole ? fold(aggregate, known, since) : loadFromSnapshot(store, aggregate, stream);
}

const fold = <State, Command, Event extends DomainEvent, R extends string>(
  aggregate: Aggregate<State, Command, Event, R>,
  known: Loaded<State>,
  events: readonly RecordedEvent[],
): Loaded<State> => events.reduce((before, stored) => evolveStored(aggregate, before, stored), known);

/** Returns a predicate that, called on events backwards, is true at the first event of a complete snapshot. */
function snapshotSearch<State, Command, Event extends DomainEvent, R extends string>({
  schemas,
  decider,
  snapshot,
  partOf,
}: SnapshottedAggregate<State, Command, Event, R>): (stored: RecordedEvent) => boolean {
  const whole = snapshot === undefined ? [] : eventsOf(snapshot(decider.initial));
  /** The next part (backwards) if all later parts were found; 0 otherwise. */
  let expected = 0;
  return (stored) => {
    if (stored.type === whole[0]?.type) return true;
    const event = partOf === undefined ? null : (readEvent(schemas, stored) as Event | null);
    const found = event === null ? null : (partOf?.(event) ?? null);
    const continues = found !== null && (found.part === found.parts || found.part === expected);
    expected = continues ? found.part - 1 : 0;
    return continues && found.part === 1;
  };
}

/** Returns a snapshot's events in order. */
export const eventsOf = <Event>(snapshot: Event | readonly Event[]): readonly Event[] =>
  Array.isArray(snapshot) ? snapshot : [snapshot as Event];
