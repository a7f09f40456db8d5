import { LRUCache } from 'lru-cache';
import { accept, type Result } from '../domain/kernel/decider.ts';
import {
  AppendTooLarge,
  appendBytes,
  type EventStore,
  MAX_APPEND_BYTES,
  type NewEvent,
  type Position,
  type Revision,
} from '../event-store/port.ts';
import { coalesceNextOf } from '../platform/limits/coalesce.ts';
import { inSpan, traceparent } from '../platform/telemetry/spans.ts';
import {
  type Aggregate,
  appendSafely,
  type CommandContext,
  conflictRetries,
  type DomainEvent,
  type Loaded,
  spanOfCommand,
  toNewEvents,
} from './handle.ts';
import {
  eventsOf,
  loadFromSnapshot,
  loadSince,
  type SnapshottedAggregate,
  snapshotEvery,
} from './snapshots.ts';

export interface Batched<T> {
  readonly value: T;
  /** Position of the command's events; null if it made none or the position is unknown. */
  readonly position: Position | null;
  readonly changed: boolean;
}

interface Waiting<State, Command, R extends string> {
  readonly command: Command;
  readonly context: CommandContext;
  readonly read: (state: State) => unknown;
  resolve(result: Result<Batched<unknown>, R>): void;
  reject(reason: unknown): void;
}

interface Batch<State> {
  readonly events: readonly NewEvent[];
  readonly state: State;
  readonly commands: number;
  settle(position: Position | null): void;
}

const MAX_COMMANDS = 256;
/** Limit of one append. A single command may exceed it; the store then rejects that command alone. */
const MAX_BATCH_BYTES = MAX_APPEND_BYTES - 65_536;

/** Decides commands in order, as many as fit into one append. A command that throws is rejected alone. */
function decideBatch<State, Command, Event extends DomainEvent, R extends string>(
  { schemas, decider }: Aggregate<State, Command, Event, R>,
  waiting: readonly Waiting<State, Command, R>[],
  from: State,
): Batch<State> {
  const events: NewEvent[] = [];
  const settlements: ((position: Position | null) => void)[] = [];
  let state = from;
  let bytes = 0;
  for (const { command, context, read, resolve, reject } of waiting.slice(0, MAX_COMMANDS)) {
    try {
      const decision = decider.decide(command, state);
      const made = decision.ok ? toNewEvents(schemas, decision.value, context) : [];
      const size = made.reduce((sum, event) => sum + bytesOf(event), 0);
      if (settlements.length > 0 && bytes + size > MAX_BATCH_BYTES) break;
      if (!decision.ok) {
        settlements.push(() => resolve(decision));
        continue;
      }
      const after = decision.value.reduce(decider.evolve, state);
      const value = read(after);
      const changed = made.length > 0;
      settlements.push((position) => resolve(accept({ value, changed, position })));
      events.push(...made);
      bytes += size;
      state = after;
    } catch (error) {
      settlements.push(() => reject(error));
    }
  }
  return {
    events,
    state,
    commands: settlements.length,
    settle: (position) => {
      for (const settle of settlements) settle(position);
    },
  };
}

/** Measures bytes as the stores do. */
const bytesOf = ({ type, data, metadata }: NewEvent): number =>
  appendBytes({ type, data: JSON.stringify(data), metadata: JSON.stringify(metadata) });

export interface Batcher<State, Command, R extends string> {
  /**
   * Submits a command: decides it together with all others that wait for the same stream, in one append. `read` derives the
   * response from the state right after the command.
   * @throws what `handle` throws
   */
  submitCommand<T>(
    stream: string,
    command: Command,
    context: CommandContext,
    read: (state: State) => T,
  ): Promise<Result<Batched<T>, R>>;
  /**
   * Decides on the current state without appending; the outcome may differ when the command is submitted. `beforeRefusing`: may
   * wait for what the refusal depends on, before the state is read that decides.
   */
  dryRun(
    stream: string,
    command: Command,
    beforeRefusing?: (refusal: R) => Promise<unknown> | undefined,
  ): Promise<R | 'unchanged' | 'changes'>;
  readState<T>(stream: string, read: (state: State) => T): Promise<T>;
}

const CACHED_STREAMS = 1_000;
/** Each command that a stale state refuses has it read again. */
const READ_GAP_MS = 20;

/** Commands of one stream, in order; a command leaves the queue after its append has ended. */
type Queue<State, Command, R extends string> = Waiting<State, Command, R>[];

/** Creates a batcher; a process needs one per kind of hot stream (architecture, rule 5). */
export const createBatcher = <State, Command, Event extends DomainEvent, R extends string>(
  store: EventStore,
  aggregate: SnapshottedAggregate<State, Command, Event, R>,
): Batcher<State, Command, R> => new StreamBatcher(store, aggregate);

class StreamBatcher<State, Command, Event extends DomainEvent, R extends string>
  implements Batcher<State, Command, R>
{
  readonly #store: EventStore;
  readonly #aggregate: SnapshottedAggregate<State, Command, Event, R>;
  /** The last known states, which other processes may have changed since. */
  readonly #states = new LRUCache<string, Loaded<State> & object>({ max: CACHED_STREAMS });
  readonly #queues = new Map<string, Queue<State, Command, R>>();

  constructor(store: EventStore, aggregate: SnapshottedAggregate<State, Command, Event, R>) {
    this.#store = store;
    this.#aggregate = aggregate;
  }

  submitCommand<T>(
    stream: string,
    command: Command,
    context: CommandContext,
    read: (state: State) => T,
  ): Promise<Result<Batched<T>, R>> {
    return inSpan(spanOfCommand(stream, command), () => this.#enqueue(stream, command, context, read));
  }

  async dryRun(
    stream: string,
    command: Command,
    beforeRefusing?: (refusal: R) => Promise<unknown> | undefined,
  ): Promise<R | 'unchanged' | 'changes'> {
    const { decide } = this.#aggregate.decider;
    const cached = this.#states.get(stream);
    const first = decide(command, (cached ?? (await this.#read(stream))).state);
    if (first.ok && first.value.length > 0) return 'changes';
    const waiting = first.ok ? undefined : beforeRefusing?.(first.refusal);
    await waiting;
    // A stale state may refuse a command that the current state accepts.
    const isStale = cached !== undefined || waiting !== undefined;
    const decision = isStale ? decide(command, (await this.#read(stream)).state) : first;
    if (!decision.ok) return decision.refusal;
    return decision.value.length === 0 ? 'unchanged' : 'changes';
  }

  async readState<T>(stream: string, read: (state: State) => T): Promise<T> {
    return read((await this.#read(stream)).state);
  }

  #enqueue<T>(
    stream: string,
    command: Command,
    context: CommandContext,
    read: (state: State) => T,
  ): Promise<Result<Batched<T>, R>> {
    return new Promise((resolve, reject) => {
      // The command's own span, because one append serves many commands.
      const span = traceparent();
      const waiting: Waiting<State, Command, R> = {
        command,
        context: span === undefined ? context : { ...context, traceparent: span },
        read,
        resolve: (result) => resolve(result as Result<Batched<T>, R>),
        reject,
      };
      const queue = this.#queues.get(stream);
      if (queue) {
        queue.push(waiting);
        return;
      }
      const begun = [waiting];
      this.#queues.set(stream, begun);
      void this.#drain(stream, begun);
    });
  }

  async #drain(stream: string, queue: Queue<State, Command, R>): Promise<void> {
    await Promise.resolve();
    while (queue.length > 0) await this.#runBatch(stream, queue);
    this.#queues.delete(stream);
  }

  /** Decides and appends the first commands of a queue, and retries on conflict. */
  async #runBatch(stream: string, queue: Queue<State, Command, R>): Promise<void> {
    const afterConflict = conflictRetries();
    let commands = queue.length;
    let loaded: Loaded<State> | undefined = this.#states.get(stream);
    let isCurrent = false;
    try {
      for (;;) {
        if (loaded === undefined) {
          loaded = await this.#read(stream);
          isCurrent = true;
        }
        const batch = decideBatch(this.#aggregate, queue, loaded.state);
        ({ commands } = batch);
        if (batch.events.length === 0 && isCurrent) {
          queue.splice(0, commands);
          batch.settle(null);
          return;
        }
        // Without an append, no conflict would reveal that the cached state is stale.
        if (batch.events.length > 0 && (await this.#append(stream, queue, loaded, batch, afterConflict)))
          return;
        loaded = undefined;
      }
    } catch (error) {
      // The outcome of the append may be unknown, so the cached state is unreliable.
      this.#states.delete(stream);
      for (const waiting of queue.splice(0, commands)) waiting.reject(error);
    }
  }

  /** @returns false after a conflict */
  async #append(
    stream: string,
    queue: Queue<State, Command, R>,
    loaded: Loaded<State>,
    batch: Batch<State>,
    afterConflict: (error: unknown) => Promise<void>,
  ): Promise<boolean> {
    try {
      const expected = loaded.revision ?? 'no_stream';
      const { revision, position } = await appendSafely(this.#store, stream, expected, batch.events);
      const after = { state: batch.state, revision };
      this.#states.set(stream, after);
      const [first] = queue.splice(0, batch.commands);
      batch.settle(position);
      await this.#snapshot(stream, loaded.revision, after, first?.context);
      return true;
    } catch (error) {
      await afterConflict(error);
      return false;
    }
  }
  /** Reads the current state. Concurrent calls share their reads: another process may have appended very many events. */
  readonly #read = coalesceNextOf(async (stream: string): Promise<Loaded<State>> => {
    const cached = this.#states.get(stream);
    const loaded = await (cached
      ? loadSince(this.#store, this.#aggregate, stream, cached)
      : loadFromSnapshot(this.#store, this.#aggregate, stream));
    const newer = (this.#states.get(stream)?.revision ?? -1) > (loaded.revision ?? -1);
    if (!newer) this.#states.set(stream, loaded);
    return loaded;
  }, READ_GAP_MS);

  /** Appends a snapshot when one is due, one event per append because each may fill one. A failed one waits for the next. */
  async #snapshot(
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
        this.#states.set(stream, { state, revision: last });
      }
    } catch (error) {
      // An oversized snapshot was not written, so the cached state is still correct.
      if (!(error instanceof AppendTooLarge)) this.#states.delete(stream);
    }
  }
}
