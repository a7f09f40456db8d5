import { createWakeup, type Wakeup } from '../platform/wakeup.ts';
import type { Batch, EventStore, Position } from './port.ts';
import { BATCH_EVENTS, TailMemory } from './tail-memory.ts';

/** A follower that takes longer each time drops out of the memory after some ten batches, and no longer delays the others. */
const PATIENCE_MS = 250;
/** Every follower may have a read of its own, so their memories together stay within those of a few tails. */
const REMEMBERED_BYTES = 8 * 1_048_576;

interface Follower {
  position: Position | null;
  /** Whether it has had all that its read has brought. */
  isWaiting: boolean;
}

/** Reads of the log behind the tail: followers near each other share one. */
export class SharedReads {
  readonly #store: Pick<EventStore, 'follow'>;
  readonly #reads = new Set<SharedRead>();

  constructor(store: Pick<EventStore, 'follow'>) {
    this.#store = store;
  }

  /** Yields all events after a position, expired ones too. @throws what the store's `follow` throws */
  async *follow(after: Position | null, signal: AbortSignal): AsyncGenerator<Batch> {
    const follower: Follower = { position: after, isWaiting: false };
    let read: SharedRead | null = null;
    try {
      while (!signal.aborted) {
        read = this.#moved(follower, read);
        const batch = await read.next(follower, signal);
        if (batch === null) continue;
        follower.position = batch.position;
        yield batch;
      }
    } finally {
      if (read) this.#leave(follower, read);
    }
  }

  /** Moves a follower to the furthest read that holds its position, so that followers gather; opens one if none does. */
  #moved(follower: Follower, current: SharedRead | null): SharedRead {
    const { position } = follower;
    let best = current?.holds(position) ? current : null;
    for (const read of this.#reads) {
      if (read.holds(position) && (best === null || read.isFurtherThan(best))) best = read;
    }
    if (best === null) {
      best = new SharedRead(this.#store, position);
      this.#reads.add(best);
    }
    if (best !== current) {
      best.join(follower);
      if (current) this.#leave(follower, current);
    }
    return best;
  }

  #leave(follower: Follower, read: SharedRead): void {
    read.leave(follower);
    if (read.isOver()) this.#reads.delete(read);
  }
}

/** One read. It reads on when each follower within its memory has had everything, or after a short wait. */
class SharedRead {
  readonly #memory = new TailMemory(REMEMBERED_BYTES);
  readonly #followers = new Set<Follower>();
  readonly #ending = new AbortController();
  readonly #source: AsyncIterator<Batch>;
  #patience: Wakeup | null = null;
  #reading: Promise<void> | null = null;
  #isOver = false;

  constructor(store: Pick<EventStore, 'follow'>, after: Position | null) {
    this.#memory.begin(after);
    const following = { after, batchSize: BATCH_EVENTS, includeExpired: true, signal: this.#ending.signal };
    this.#source = store.follow(following)[Symbol.asyncIterator]();
  }

  isOver(): boolean {
    return this.#isOver;
  }

  /** Returns whether a follower at this position can go on from memory. */
  holds(position: Position | null): boolean {
    return !this.#isOver && this.#memory.covers(position) && (position ?? -1n) <= this.#end();
  }

  isFurtherThan(other: SharedRead): boolean {
    return this.#end() > other.#end();
  }

  join(follower: Follower): void {
    this.#followers.add(follower);
  }

  /** Ends the read with its last follower. */
  leave(follower: Follower): void {
    this.#followers.delete(follower);
    this.#hurryIfAllWait();
    if (this.#followers.size > 0) return;
    this.#isOver = true;
    this.#ending.abort();
  }

  /** Returns the follower's next batch; null when the read is over or ahead of the follower, or `signal` aborts. */
  async next(follower: Follower, signal: AbortSignal): Promise<Batch | null> {
    try {
      while (this.#memory.covers(follower.position)) {
        const batch = this.#memory.after(follower.position);
        if (batch !== null || this.#isOver || signal.aborted) return batch;
        follower.isWaiting = true;
        this.#hurryIfAllWait();
        await Promise.race([this.#readOn(), this.#memory.grown(signal)]);
      }
      return null;
    } finally {
      follower.isWaiting = false;
    }
  }

  #readOn(): Promise<void> {
    this.#reading ??= this.#read();
    // Its followers may all end meanwhile.
    this.#reading.catch(() => undefined);
    return this.#reading;
  }

  async #read(): Promise<void> {
    try {
      if (!this.#allWait()) {
        this.#patience = createWakeup();
        await this.#patience.wait(PATIENCE_MS, this.#ending.signal);
      }
      const { done, value } = await this.#source.next();
      if (done) this.#isOver = true;
      else this.#memory.add(value);
    } catch (error) {
      this.#isOver = true;
      throw error;
    } finally {
      this.#reading = null;
    }
  }

  #hurryIfAllWait(): void {
    if (this.#allWait()) this.#patience?.wake();
  }

  #allWait(): boolean {
    return [...this.#followers].every(
      ({ isWaiting, position }) => isWaiting || !this.#memory.covers(position),
    );
  }

  #end(): bigint {
    return this.#memory.end() ?? -1n;
  }
}
