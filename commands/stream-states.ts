import { LRUCache } from 'lru-cache';
import { AppendTooLarge, type EventStore, type Revision } from '../event-store/port.ts';
import { type CommandContext, type Loaded, load, toNewEvents } from './handle.ts';
import { eventsOf, loadFromSnapshot, type SnapshottedAggregate, snapshotEvery } from './snapshots.ts';

const CACHED_STREAMS = 1_000;

/** Reads and caches the states of an aggregate's streams, and writes their snapshots. */
export class StreamStates<State, Command, Event extends { type: string; data: object }, R extends string> {
  readonly #store: EventStore;
  readonly #aggregate: SnapshottedAggregate<State, Command, Event, R>;
  readonly #cache = new LRUCache<string, Loaded<State> & object>({ max: CACHED_STREAMS });
  readonly #reading = new Map<string, Promise<Loaded<State>>>();

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

  /** Reads the current state. Concurrent calls share one read of a whole stream; each then reads only the events since. */
  async read(stream: string): Promise<Loaded<State>> {
    const reading = this.#reading;
    for (let read = reading.get(stream); read; read = reading.get(stream)) await read.catch(() => undefined);
    const cached = this.#cache.get(stream);
    const loaded = cached
      ? await load(this.#store, this.#aggregate, stream, cached)
      : await this.#readWhole(stream);
    const newer = (this.#cache.get(stream)?.revision ?? -1) > (loaded.revision ?? -1);
    if (!newer) this.#cache.set(stream, loaded);
    return loaded;
  }

  #readWhole(stream: string): Promise<Loaded<State>> {
    const read = loadFromSnapshot(this.#store, this.#aggregate, stream).finally(() =>
      this.#reading.delete(stream),
    );
    this.#reading.set(stream, read);
    return read;
  }

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
