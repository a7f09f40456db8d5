import { approximateBytes } from '../platform/size.ts';
import type { Batch, Position } from './port.ts';

interface Chunk extends Batch {
  /** The position before the chunk. */
  readonly after: Position | null;
  readonly bytes: number;
}

export const BATCH_EVENTS = 500;
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
