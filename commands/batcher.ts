import { LRUCache } from 'lru-cache';
import type { Result } from '../domain/kernel/decider.ts';
import { AppendTooLarge, type EventStore, type Revision } from '../event-store/port.ts';
import { inSpan, traceparent } from '../platform/spans.ts';
import { type Batch, type Batched, decideBatch, type Waiting } from './batch.ts';
import { conflictRetries } from './conflicts.ts';
import {
  appendSafely,
  type CommandContext,
  type Loaded,
  load,
  spanOfCommand,
  toNewEvents,
} from './handle.ts';
import { eventsOf, loadFromSnapshot, type SnapshottedAggregate, snapshotEvery } from './snapshots.ts';

const CACHED_STREAMS = 1_000;

export interface Batcher<State, Command, R extends string> {
  /**
   * Decides the command together with all others that wait for the same stream, in one append. `read` derives the
   * response from the state right after the command.
   * @throws what `handle` throws
   */
  submit<T>(
    stream: string,
    command: Command,
    context: CommandContext,
    read: (state: State) => T,
  ): Promise<Result<Batched<T>, R>>;
  /** Decides on the current state without appending; the outcome may differ when the command is submitted. */
  dryRun(stream: string, command: Command): Promise<R | 'unchanged' | 'changes'>;
  readState<T>(stream: string, read: (state: State) => T): Promise<T>;
}

/** Commands of one stream, in order; a command leaves the queue after its append has ended. */
type Queue<State, Command, R extends string> = Waiting<State, Command, R>[];

type Step<State> =
  | { readonly is: 'reading' }
  /** `isCurrent`: the state was read from the store for this batch. */
  | { readonly is: 'deciding'; readonly loaded: Loaded<State>; readonly isCurrent: boolean }
  | { readonly is: 'appending'; readonly loaded: Loaded<State>; readonly batch: Batch<State> }
  | { readonly is: 'refused'; readonly error: unknown }
  | { readonly is: 'settled' };

/** Creates a batcher; a process needs one per kind of hot stream (architecture, rule 5). */
export const createBatcher = <State, Command, Event extends { type: string; data: object }, R extends string>(
  store: EventStore,
  aggregate: SnapshottedAggregate<State, Command, Event, R>,
): Batcher<State, Command, R> => {
  const cache = new LRUCache<string, Loaded<State> & object>({ max: CACHED_STREAMS });
  const queues = new Map<string, Queue<State, Command, R>>();

  const reading = new Map<string, Promise<Loaded<State>>>();

  const readWhole = (stream: string): Promise<Loaded<State>> => {
    const read = loadFromSnapshot(store, aggregate, stream).finally(() => reading.delete(stream));
    reading.set(stream, read);
    return read;
  };

  const current = async (stream: string): Promise<Loaded<State>> => {
    // Concurrent calls share one read of a whole stream; each then reads only the events since.
    for (let read = reading.get(stream); read; read = reading.get(stream)) await read.catch(() => undefined);
    const cached = cache.get(stream);
    const loaded = cached ? await load(store, aggregate, stream, cached) : await readWhole(stream);
    const newer = (cache.get(stream)?.revision ?? -1) > (loaded.revision ?? -1);
    if (!newer) cache.set(stream, loaded);
    return loaded;
  };

  /** Decides and appends the first commands of a queue, and retries on conflict. */
  const runBatch = async (stream: string, queue: Queue<State, Command, R>): Promise<void> => {
    const afterConflict = conflictRetries();
    const cached = cache.get(stream);
    let commands = queue.length;
    let step: Step<State> = cached ? { is: 'deciding', loaded: cached, isCurrent: false } : { is: 'reading' };
    const next = async (now: Step<State>): Promise<Step<State>> => {
      switch (now.is) {
        case 'reading':
          return { is: 'deciding', loaded: await current(stream), isCurrent: true };
        case 'deciding': {
          const batch = decideBatch(aggregate, queue, now.loaded.state);
          commands = batch.commands;
          if (batch.events.length > 0) return { is: 'appending', loaded: now.loaded, batch };
          // Without an append, no conflict would reveal that the cached state is stale.
          if (!now.isCurrent) return { is: 'reading' };
          queue.splice(0, commands);
          batch.settle(null);
          return { is: 'settled' };
        }
        case 'appending': {
          const { loaded, batch } = now;
          try {
            const expected = loaded.revision ?? 'no_stream';
            const { revision, position } = await appendSafely(store, stream, expected, batch.events);
            cache.set(stream, { state: batch.state, revision });
            const [first] = queue.splice(0, commands);
            batch.settle(position);
            await snapshot(stream, loaded.revision, { ...batch, revision }, first?.context);
            return { is: 'settled' };
          } catch (error) {
            return { is: 'refused', error };
          }
        }
        case 'refused':
          await afterConflict(now.error);
          return { is: 'reading' };
        case 'settled':
          return now;
      }
    };
    try {
      while (step.is !== 'settled') step = await next(step);
    } catch (error) {
      // The outcome of the append may be unknown, so the cached state is unreliable.
      cache.delete(stream);
      for (const waiting of queue.splice(0, commands)) waiting.reject(error);
    }
  };

  /** Appends a snapshot when one is due, one event per append because each may fill one. A failed one waits for the next. */
  const snapshot = async (
    stream: string,
    before: Revision | null,
    { state, revision }: { readonly state: State; readonly revision: Revision },
    context: CommandContext | undefined,
  ): Promise<void> => {
    const every = snapshotEvery(aggregate.sizeOf?.(state) ?? 0);
    const isDue = Math.floor(revision / every) > Math.floor((before ?? 0) / every);
    if (!isDue || !aggregate.snapshot || !context) return;
    try {
      let last = revision;
      for (const part of eventsOf(aggregate.snapshot(state))) {
        // Separate appends let other commands run in between.
        const events = toNewEvents(aggregate.schemas, [part], context);
        ({ revision: last } = await store.append(stream, last, events));
        cache.set(stream, { state, revision: last });
      }
    } catch (error) {
      // An oversized snapshot was not written, so the cached state is still correct.
      if (!(error instanceof AppendTooLarge)) cache.delete(stream);
    }
  };

  const drain = async (stream: string, queue: Queue<State, Command, R>): Promise<void> => {
    await Promise.resolve();
    while (queue.length > 0) await runBatch(stream, queue);
    queues.delete(stream);
  };

  return {
    dryRun: async (stream, command) => {
      const cached = cache.get(stream);
      const first = aggregate.decider.decide(command, (cached ?? (await current(stream))).state);
      if (first.ok && first.value.length > 0) return 'changes';
      // A stale state may refuse a command that the current state accepts.
      const decision = cached ? aggregate.decider.decide(command, (await current(stream)).state) : first;
      if (!decision.ok) return decision.refusal;
      return decision.value.length === 0 ? 'unchanged' : 'changes';
    },
    readState: async (stream, read) => read((await current(stream)).state),
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
      // The command's own span, because one append serves many commands.
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
