import type { LookedUp } from './lookup-attempt.ts';

/** Attempts under way, and their results until these are taken. */
export class RunningLookups {
  readonly #running = new Set<Promise<void>>();
  readonly #finished: LookedUp[] = [];
  /** What ends the iteration; it may happen while a result is being handled. */
  readonly #failures: unknown[] = [];

  /** Each is fulfilled when its attempt has ended, never rejected. */
  get all(): ReadonlySet<Promise<void>> {
    return this.#running;
  }

  get size(): number {
    return this.#running.size;
  }

  /** @param attempt null: it has no result */
  add(attempt: Promise<LookedUp | null>): void {
    const work = attempt
      .then(
        (result) => {
          if (result) this.#finished.push(result);
        },
        (cause: unknown) => this.fail(cause),
      )
      .finally(() => this.#running.delete(work));
    this.#running.add(work);
  }

  /** Ends the iteration with an error. */
  fail(cause: unknown): void {
    this.#failures.push(cause);
  }

  /** Removes and returns the first result that has not been taken. */
  take(): LookedUp | undefined {
    return this.#finished.shift();
  }

  /** @throws the error of the first attempt that failed without a result */
  throwIfFailed(): void {
    if (this.#failures.length > 0) throw this.#failures[0];
  }
}
