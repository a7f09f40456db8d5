import type { Logger } from 'pino';
import { createWakeup, type Wakeup } from '../platform/clock/waiting.ts';
import {
  approximateBytes,
  type Batch,
  type EventStore,
  type FollowOptions,
  isHidden,
  type Position,
  type RecordedEvent,
} from './port.ts';

interface Chunk extends Batch {
  /** The position before the chunk. */
  readonly after: Position | null;
  readonly bytes: number;
}

const BATCH_EVENTS = 500;
/** Maximum bytes per batch, unless a single read brought more. */
const BATCH_BYTES = 4 * 1_048_576;
/** Memory for followers that are a little slower. */
const REMEMBERED_EVENTS = 5_000;
const REMEMBERED_BYTES = 32 * 1_048_576;

/** Keeps the newest batches of the log, within bounds. */
export class TailMemory {
  readonly #chunks: Chunk[] = [];
  readonly #waiting = new Set<() => void>();
  #events = 0;
  #bytes = 0;
  /** End of the newest batch; undefined until the tail has started. */
  #end: Position | null | undefined;

  hasBegun(): boolean {
    return this.#end !== undefined;
  }

  end(): Position | null {
    return this.#end ?? null;
  }

  begin(position: Position | null): void {
    this.#end = position;
    this.#wakeAll();
  }

  add(batch: Batch): void {
    const chunk = {
      ...batch,
      after: this.#end ?? null,
      bytes: batch.events.reduce((sum, event) => sum + approximateBytes(event), 0),
    };
    this.#chunks.push(chunk);
    this.#end = batch.position;
    this.#events += batch.events.length;
    this.#bytes += chunk.bytes;
    while (this.#chunks.length > 1 && this.#isTooLarge()) this.#forgetOldest();
    this.#wakeAll();
  }

  /** Returns whether memory holds everything after a position. */
  covers(position: Position | null): boolean {
    if (this.#end === undefined) return false;
    const start = this.#chunks[0] ? this.#chunks[0].after : this.#end;
    return start === null || (position !== null && position >= start);
  }

  /** Returns a batch after a covered position; null if there is nothing yet. */
  after(position: Position | null): Batch | null {
    const isAfter = (at: Position): boolean => position === null || at > position;
    // From the end, because almost all followers are there.
    const behind = this.#chunks.slice(this.#chunks.findLastIndex(({ position: end }) => !isAfter(end)) + 1);
    let size = 0;
    let count = 0;
    const beyond = behind.findIndex((chunk, index) => {
      size += chunk.bytes;
      count += chunk.events.length;
      return index > 0 && (size > BATCH_BYTES || count > BATCH_EVENTS);
    });
    const taken = beyond < 0 ? behind : behind.slice(0, beyond);
    const last = taken.at(-1);
    if (last === undefined) return null;
    const events = taken.flatMap((chunk) => chunk.events).filter((event) => isAfter(event.position));
    return { events, position: last.position };
  }

  /** Resolves when there may be more. */
  grown(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#waiting.add(done);
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    });
  }

  #isTooLarge(): boolean {
    return this.#events > REMEMBERED_EVENTS || this.#bytes > REMEMBERED_BYTES;
  }

  #forgetOldest(): void {
    const oldest = this.#chunks.shift();
    this.#events -= oldest?.events.length ?? 0;
    this.#bytes -= oldest?.bytes ?? 0;
  }

  #wakeAll(): void {
    for (const wake of this.#waiting) wake();
  }
}

export interface TailFollowOptions extends FollowOptions {
  /**
   * Returns how long events may wait for a batch before this follower gets them, in milliseconds, while no caller waits for them
   * (`hurry`); called each time.
   */
  readonly gatherMs?: () => number;
}

export interface TailOptions {
  readonly store: Pick<EventStore, 'follow' | 'head'>;
  /** Returns milliseconds since the epoch, for expiry. */
  readonly now: () => number;
  readonly log: Pick<Logger, 'error'>;
}

/** Smaller batches gather, because under load a read per handful of events costs more than the events. */
const SMALL_BATCH_EVENTS = 100;
const GATHER_MS = 200;
/** For this long after a caller wanted the next events, followers get them as they are read: they may be of a later read. */
const HURRIED_MS = 250;
const RETRY_MS = 250;

/**
 * The newest part of the log, read and decoded once per process for all of its followers. It starts reading at the head of
 * the log with its first follower.
 */
export class Tail {
  readonly #options: TailOptions;
  readonly #memory = new TailMemory();
  readonly #closing = new AbortController();
  readonly #gathering = createWakeup();
  readonly #gatherTimes = new Set<() => number>();
  /** Wake-ups of followers that gather for longer than the tail itself. */
  readonly #resting = new Set<Wakeup>();
  #hurriedUntil = Number.NEGATIVE_INFINITY;
  #hurriedTo: Position = -1n as Position;
  #reading: Promise<void> | null = null;

  constructor(options: TailOptions) {
    this.#options = options;
  }

  /** Like `EventStore.follow`. Followers behind the tail's memory read the store apart until they have caught up. */
  async *follow({ gatherMs = () => GATHER_MS, ...options }: TailFollowOptions): AsyncGenerator<Batch> {
    const memory = this.#memory;
    const signal = AbortSignal.any([options.signal, this.#closing.signal]);
    this.#reading ??= this.#read();
    this.#gatherTimes.add(gatherMs);
    const rest = createWakeup();
    this.#resting.add(rest);
    let { after } = options;
    try {
      while (!signal.aborted) {
        if (memory.hasBegun() && !memory.covers(after)) {
          for await (const batch of this.#readBehind({ ...options, after }, signal)) {
            after = batch.position;
            yield batch;
          }
          continue;
        }
        const batch = memory.after(after);
        if (batch === null) await memory.grown(signal);
        else {
          const begunAt = performance.now();
          after = batch.position;
          yield this.#visible(batch, options);
          const ms = gatherMs();
          const now = performance.now();
          // None where the follower has worked on the batch for longer.
          const restMs = begunAt + ms - now;
          if (ms > GATHER_MS && restMs > 0 && now > this.#hurriedUntil && batch.events.length < BATCH_EVENTS)
            await rest.wait(restMs, signal);
        }
      }
    } finally {
      this.#gatherTimes.delete(gatherMs);
      this.#resting.delete(rest);
    }
  }

  covers(position: Position | null): boolean {
    return this.#memory.covers(position);
  }

  /**
   * Ends the current gathering, because a caller waits for the next events. `to`: the position that it waits for, where it is known:
   * the next read may end before it, as events of one moment arrive one by one from EventStoreDB.
   */
  hurry(to: Position | null = null): void {
    this.#hurriedUntil = performance.now() + HURRIED_MS;
    if (to !== null && to > this.#hurriedTo) this.#hurriedTo = to;
    this.#gathering.wake();
    for (const rest of this.#resting) rest.wake();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#reading?.catch(() => undefined);
  }

  async #read(): Promise<void> {
    const { store, log } = this.#options;
    const { signal } = this.#closing;
    while (!this.#memory.hasBegun() && !signal.aborted) {
      await store.head().then(
        (head) => this.#memory.begin(head),
        () => this.#gathering.wait(RETRY_MS, signal),
      );
    }
    while (!signal.aborted) {
      await this.#readOn(signal).catch(async (error: unknown) => {
        log.error({ error: String(error) }, 'the log could not be read; retry scheduled');
        await this.#gathering.wait(RETRY_MS, signal);
      });
    }
  }

  async #readOn(signal: AbortSignal): Promise<void> {
    const following = { after: this.#memory.end(), batchSize: BATCH_EVENTS, includeExpired: true, signal };
    for await (const batch of this.#options.store.follow(following)) {
      this.#memory.add(batch);
      if (batch.events.length < SMALL_BATCH_EVENTS) await this.#gather(signal);
    }
  }

  async #gather(signal: AbortSignal): Promise<void> {
    if ((this.#memory.end() ?? -1n) < this.#hurriedTo) return;
    const ms = Math.min(GATHER_MS, ...[...this.#gatherTimes].map((gatherMs) => gatherMs()));
    if (ms > 0) await this.#gathering.wait(ms, signal);
  }

  /** Follows the store up to the first batch that the tail's memory covers. */
  async *#readBehind(options: FollowOptions, signal: AbortSignal): AsyncGenerator<Batch> {
    const joining = new AbortController();
    const following = { ...options, signal: AbortSignal.any([signal, joining.signal]) };
    for await (const batch of this.#options.store.follow(following)) {
      if (this.#memory.covers(batch.position)) joining.abort();
      yield batch;
    }
  }

  #visible({ events, position }: Batch, { prefixes, includeExpired }: FollowOptions): Batch {
    const instant = this.#options.now();
    const isWanted = (event: RecordedEvent): boolean =>
      (prefixes === undefined || prefixes.some((prefix) => event.stream.startsWith(prefix))) &&
      (includeExpired === true || !isHidden(event, instant));
    return { events: events.filter(isWanted), position };
  }
}
