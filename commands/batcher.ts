import type { Result } from '../domain/kernel/decider.ts';
import type { EventStore } from '../event-store/port.ts';
import { inSpan, traceparent } from '../platform/telemetry/spans.ts';
import { type Batch, type Batched, decideBatch, type Waiting } from './batch.ts';
import { conflictRetries } from './conflicts.ts';
import { appendSafely, type CommandContext, type Loaded, spanOfCommand } from './handle.ts';
import type { SnapshottedAggregate } from './snapshots.ts';
import { StreamStates } from './stream-states.ts';

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

/** Commands of one stream, in order; a command leaves the queue after its append has ended. */
type Queue<State, Command, R extends string> = Waiting<State, Command, R>[];

/** One append of a stream's first commands, and its retries. */
interface Run<State, Command, R extends string> {
  readonly stream: string;
  readonly queue: Queue<State, Command, R>;
  /** How many commands of the queue it has decided. */
  commands: number;
  /** Waits after a conflict, and throws any other error. */
  readonly afterConflict: (error: unknown) => Promise<void>;
}

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
): Batcher<State, Command, R> => new StreamBatcher(store, aggregate);

class StreamBatcher<State, Command, Event extends { type: string; data: object }, R extends string>
  implements Batcher<State, Command, R>
{
  readonly #store: EventStore;
  readonly #aggregate: SnapshottedAggregate<State, Command, Event, R>;
  readonly #states: StreamStates<State, Command, Event, R>;
  readonly #queues = new Map<string, Queue<State, Command, R>>();

  constructor(store: EventStore, aggregate: SnapshottedAggregate<State, Command, Event, R>) {
    this.#store = store;
    this.#aggregate = aggregate;
    this.#states = new StreamStates(store, aggregate);
  }

  submit<T>(
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
    const cached = this.#states.cached(stream);
    const first = decide(command, (cached ?? (await this.#states.read(stream))).state);
    if (first.ok && first.value.length > 0) return 'changes';
    const waiting = first.ok ? undefined : beforeRefusing?.(first.refusal);
    await waiting;
    // A stale state may refuse a command that the current state accepts.
    const isStale = cached !== undefined || waiting !== undefined;
    const decision = isStale ? decide(command, (await this.#states.read(stream)).state) : first;
    if (!decision.ok) return decision.refusal;
    return decision.value.length === 0 ? 'unchanged' : 'changes';
  }

  async readState<T>(stream: string, read: (state: State) => T): Promise<T> {
    return read((await this.#states.read(stream)).state);
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
      const fresh = [waiting];
      this.#queues.set(stream, fresh);
      void this.#drain(stream, fresh);
    });
  }

  async #drain(stream: string, queue: Queue<State, Command, R>): Promise<void> {
    await Promise.resolve();
    while (queue.length > 0) await this.#runBatch(stream, queue);
    this.#queues.delete(stream);
  }

  /** Decides and appends the first commands of a queue, and retries on conflict. */
  async #runBatch(stream: string, queue: Queue<State, Command, R>): Promise<void> {
    const run = { stream, queue, commands: queue.length, afterConflict: conflictRetries() };
    const cached = this.#states.cached(stream);
    let step: Step<State> = cached ? { is: 'deciding', loaded: cached, isCurrent: false } : { is: 'reading' };
    try {
      while (step.is !== 'settled') step = await this.#next(run, step);
    } catch (error) {
      // The outcome of the append may be unknown, so the cached state is unreliable.
      this.#states.forget(stream);
      for (const waiting of queue.splice(0, run.commands)) waiting.reject(error);
    }
  }

  async #next(run: Run<State, Command, R>, now: Step<State>): Promise<Step<State>> {
    switch (now.is) {
      case 'reading':
        return { is: 'deciding', loaded: await this.#states.read(run.stream), isCurrent: true };
      case 'deciding': {
        const batch = decideBatch(this.#aggregate, run.queue, now.loaded.state);
        run.commands = batch.commands;
        if (batch.events.length > 0) return { is: 'appending', loaded: now.loaded, batch };
        // Without an append, no conflict would reveal that the cached state is stale.
        if (!now.isCurrent) return { is: 'reading' };
        run.queue.splice(0, run.commands);
        batch.settle(null);
        return { is: 'settled' };
      }
      case 'appending':
        return this.#append(run, now.loaded, now.batch);
      case 'refused':
        await run.afterConflict(now.error);
        return { is: 'reading' };
      case 'settled':
        return now;
    }
  }

  async #append(
    { stream, queue, commands }: Run<State, Command, R>,
    loaded: Loaded<State>,
    batch: Batch<State>,
  ): Promise<Step<State>> {
    try {
      const expected = loaded.revision ?? 'no_stream';
      const { revision, position } = await appendSafely(this.#store, stream, expected, batch.events);
      this.#states.cache(stream, { state: batch.state, revision });
      const [first] = queue.splice(0, commands);
      batch.settle(position);
      await this.#states.snapshot(stream, loaded.revision, { state: batch.state, revision }, first?.context);
      return { is: 'settled' };
    } catch (error) {
      return { is: 'refused', error };
    }
  }
}
