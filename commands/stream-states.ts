import { LRUCache } from 'lru-cache';
import { AppendTooLarge, type EventStore, type Revision } from '../event-store/port.ts';
import { coalesceNextOf } from '../platform/limits/coalesce.ts';
import { type CommandContext, type Loaded, toNewEvents } from './handle.ts';
import {
  eventsOf,
  loadFromSnapshot,
  loadSince,
  type SnapshottedAggregate,
  snapshotEvery,
} from './snapshots.ts';

const CACHED_STREAMS = 1_000;
/** Each command that a stale state refuses has it read again. */
const READ_GAP_MS = 20;

/** Reads and caches the states of an aggregate's streams, and writes their snapshots. */
export class StreamStates<State, Command, Event extends { type: string; data: object }, R extends string> {
  readonly #store: EventStore;
  readonly #aggregate: SnapshottedAggregate<State, Command, Event, R>;
  readonly #cache = new LRUCache<string, Loaded<State> & object>({ max: CACHED_STREAMS });

  constructor(store: EventStore, aggregate: SnapshottedAggregate<State, Command, Event, R>) {
    this.#store = store;
    this.#aggregate = aggregate;
  }

  /** Returns the last known state, which other processes may have changed since. */
  cached(stream: string): Loaded<State> | undefined {
    return this.#cache.get(stream);
  }

  cache(stream: string, state: Loaded<State>): void {
    this.#cache.set(stream, state);
  }

  forget(stream: string): void {
    this.#cache.delete(stream);
  }

  /** Reads the current state. Concurrent calls share their reads: another process may have appended very many events. */
  readonly read = coalesceNextOf(async (stream: string): Promise<Loaded<State>> => {
    const cached = this.#cache.get(stream);
    const loaded = await (cached
      ? loadSince(this.#store, this.#aggregate, stream, cached)
      : loadFromSnapshot(this.#store, this.#aggregate, stream));
    const newer = (this.#cache.get(stream)?.revision ?? -1) > (loaded.revision ?? -1);
    if (!newer) this.#cache.set(stream, loaded);
    return loaded;
  }, READ_GAP_MS);

  /** Appends a snapshot when one is due, one event per append because each may fill one. A failed one waits for the next. */
  async snapshot(
    stream: string,
    before: Revision | null,
    { state, revision }: { readonly state: State; readonly revision: Revision },
    context: CommandContext | undefined,
  ): Promise<void> {
    const { sizeOf, snapshot, schemas } = this.#aggregate;
    const every = snapshotEvery(sizeOf?.(state) ?? 0);
    const isDue = Math.floor(revision / every) > Math.floor((before ?? 0) / every);
    if (!isDue || !snapshot || !context) return;
    try {
      let last = revision;
      for (const part of eventsOf(snapshot(state))) {
        // Separate appends let other commands run in between.
        const events = toNewEvents(schemas, [part], context);
        ({ revision: last } = await this.#store.append(stream, last, events));
        this.#cache.set(stream, { state, revision: last });
      }
    } catch (error) {
      // An oversized snapshot was not written, so the cached state is still correct.
      if (!(error instanceof AppendTooLarge)) this.#cache.delete(stream);
    }
  }
}
