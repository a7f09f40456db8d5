import { LRUCache } from 'lru-cache';
import { accept, type Result } from '../domain/kernel/decider.ts';
import { readEvent } from '../domain/kernel/events.ts';
import type { EventStore, NewEvent, Position, RecordedEvent } from '../event-store/port.ts';
import { inSpan, traceparent } from '../platform/spans.ts';
import { conflictRetries } from './conflicts.ts';
import {
  type Aggregate,
  appendSafely,
  type CommandContext,
  type Loaded,
  load,
  spanOfCommand,
  toNewEvents,
} from './handle.ts';

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

export interface Batched<T> {
  readonly value: T;
  /** Where the command's events stand; null where it had none, or the place is not known. */
  readonly position: Position | null;
  /** Whether the command changed anything. */
  readonly changed: boolean;
}

interface Waiting<State, Command, R extends string> {
  readonly command: Command;
  readonly context: CommandContext;
  readonly read: (state: State) => unknown;
  resolve(result: Result<Batched<unknown>, R>): void;
  reject(reason: unknown): void;
}

/** Events between two snapshots of a small state; of a large one, about as many as it holds. */
const SNAPSHOT_EVERY = 1_000;
const BATCH = 256;
const CACHED_STREAMS = 1_000;

export interface Batcher<State, Command, R extends string> {
  /**
   * Decides the command together with all that wait for the same stream, in one append. `read` takes the
   * answer from the state right after the command.
   * @throws what `handle` throws
   */
  submit<T>(
    stream: string,
    command: Command,
    context: CommandContext,
    read: (state: State) => T,
  ): Promise<Result<Batched<T>, R>>;
  /** What the command would come to now: a hint, not a decision. */
  likely(stream: string, command: Command): Promise<R | 'unchanged' | 'changes'>;
  /** What the stream's state says now. */
  look<T>(stream: string, read: (state: State) => T): Promise<T>;
}

/** One batcher a process for one kind of hot stream (architecture, rule 5). */
export const createBatcher = <State, Command, Event extends { type: string; data: object }, R extends string>(
  store: EventStore,
  aggregate: SnapshottedAggregate<State, Command, Event, R>,
): Batcher<State, Command, R> => {
  const cache = new LRUCache<string, Loaded<State> & object>({ max: CACHED_STREAMS });
  const queues = new Map<string, Waiting<State, Command, R>[]>();

  const current = async (stream: string): Promise<Loaded<State>> => {
    const cached = cache.get(stream);
    const loaded = cached
      ? await load(store, aggregate, stream, cached)
      : await loadFromSnapshot(store, aggregate, stream);
    const newer = (cache.get(stream)?.revision ?? -1) > (loaded.revision ?? -1);
    if (!newer) cache.set(stream, loaded);
    return loaded;
  };

  const decideAll = (batch: readonly Waiting<State, Command, R>[], from: Loaded<State>) => {
    const events: NewEvent[] = [];
    let { state } = from;
    const results = batch.map(({ command, context, read }): Result<Omit<Batched<unknown>, 'position'>, R> => {
      const decision = aggregate.decider.decide(command, state);
      if (!decision.ok) return decision;
      events.push(...toNewEvents(aggregate.schemas, decision.value, context));
      state = decision.value.reduce(aggregate.decider.evolve, state);
      return accept({ value: read(state), changed: decision.value.length > 0 });
    });
    return { events, results, state };
  };

  const runBatch = async (stream: string, batch: readonly Waiting<State, Command, R>[]): Promise<void> => {
    const cached = cache.get(stream);
    let loaded = cached ?? (await current(stream));
    let verified = cached === undefined;
    const conflict = conflictRetries();
    for (;;) {
      const { events, results, state } = decideAll(batch, loaded);
      const first = batch[0];
      if (events.length === 0 && !verified) {
        // Nothing to append means that nothing would tell a stale fold: read forward before answering.
        const before = loaded.revision;
        loaded = await current(stream);
        verified = true;
        if (loaded.revision !== before) continue;
      }
      try {
        const appended =
          events.length > 0 && first
            ? await append(stream, loaded, events, state, first.context)
            : { position: null };
        results.forEach((result, index) => {
          batch[index]?.resolve(
            result.ok ? accept({ ...result.value, position: appended.position }) : result,
          );
        });
        return;
      } catch (error) {
        await conflict(error);
        loaded = await current(stream);
        verified = true;
      }
    }
  };

  const append = async (
    stream: string,
    { revision }: Loaded<State>,
    events: readonly NewEvent[],
    state: State,
    context: CommandContext,
  ) => {
    const appended = await appendSafely(store, stream, revision ?? 'no_stream', events);
    cache.set(stream, { state, revision: appended.revision });
    const every = snapshotEvery(aggregate.sizeOf?.(state) ?? 0);
    if (Math.floor(appended.revision / every) > Math.floor((revision ?? 0) / every)) {
      await writeSnapshot(stream, state, appended.revision, context);
    }
    return appended;
  };

  /** In an append of its own, as it may fill one. Where it cannot be written, the next one serves as well. */
  const writeSnapshot = async (
    stream: string,
    state: State,
    revision: number,
    context: CommandContext,
  ): Promise<void> => {
    if (!aggregate.snapshot) return;
    try {
      const events = toNewEvents(aggregate.schemas, [aggregate.snapshot(state)], context);
      const appended = await store.append(stream, revision, events);
      cache.set(stream, { state, revision: appended.revision });
    } catch {
      cache.delete(stream);
    }
  };

  const drain = async (stream: string, queue: Waiting<State, Command, R>[]): Promise<void> => {
    await Promise.resolve();
    while (queue.length > 0) {
      const batch = queue.splice(0, BATCH);
      try {
        await runBatch(stream, batch);
      } catch (error) {
        // What the stream holds by now is not known.
        cache.delete(stream);
        for (const waiting of batch) waiting.reject(error);
      }
    }
    queues.delete(stream);
  };

  return {
    likely: async (stream, command) => {
      const cached = cache.get(stream);
      const first = aggregate.decider.decide(command, (cached ?? (await current(stream))).state);
      if (first.ok && first.value.length > 0) return 'changes';
      // A fold that is behind may refuse what is free by now.
      const decision = cached ? aggregate.decider.decide(command, (await current(stream)).state) : first;
      if (!decision.ok) return decision.refusal;
      return decision.value.length === 0 ? 'unchanged' : 'changes';
    },
    look: async (stream, read) => read((await current(stream)).state),
    submit: <T>(stream: string, command: Command, context: CommandContext, read: (state: State) => T) =>
      inSpan(spanOfCommand(stream, command), () => enqueue(stream, command, context, read)),
  };

  function enqueue<T>(
    stream: string,
    command: Command,
    context: CommandContext,
    read: (state: State) => T,
  ): Promise<Result<Batched<T>, R>> {
    return new Promise((resolve, reject) => {
      // Of this command alone: the append is one for many.
      const span = traceparent();
      const waiting: Waiting<State, Command, R> = {
        command,
        context: span === undefined ? context : { ...context, traceparent: span },
        read,
        resolve: (result) => resolve(result as Result<Batched<T>, R>),
        reject,
      };
      const queue = queues.get(stream);
      if (queue) {
        queue.push(waiting);
        return;
      }
      const fresh = [waiting];
      queues.set(stream, fresh);
      void drain(stream, fresh);
    });
  }
};

/** Doubled up to the state's size, so that all snapshots together cost about what the events cost. */
const snapshotEvery = (size: number): number =>
  SNAPSHOT_EVERY * 2 ** Math.max(0, Math.floor(Math.log2(size / SNAPSHOT_EVERY)));

/** Reads back to the newest snapshot and folds from there. */
const loadFromSnapshot = async <
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
  }
  let state = decider.initial;
  for (const stored of back.reverse()) {
    const event = readEvent(schemas, stored) as Event | null;
    if (event) state = decider.evolve(state, event);
  }
  return { state, revision: back.at(-1)?.revision ?? null };
};
