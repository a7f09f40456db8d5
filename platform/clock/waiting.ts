import { randomInt } from 'node:crypto';
import pTimeout from 'p-timeout';

/** Resolves after `ms` milliseconds, or when the signal aborts. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });

/** Runs work `ms` milliseconds after it is first asked for, once for all that ask until then; while nobody asks, no timer runs. */
export function runSoon(work: () => Promise<unknown>, ms: number): { soon(): void; cancel(): void } {
  let timer: NodeJS.Timeout | null = null;
  return {
    soon: () => {
      timer ??= setTimeout(() => {
        timer = null;
        void work();
      }, ms).unref();
    },
    cancel: () => {
      if (timer) clearTimeout(timer);
      timer = null;
    },
  };
}

/** Waits for the next turn of the event loop, after what its sockets brought in this one. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Rejects with `late()` when the work takes longer than `ms` milliseconds; the work itself continues. */
export const within = <T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), Math.max(0, ms));
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });

/** Waits at most `ms` milliseconds for the work. @returns whether it has ended. @throws what the work throws */
export const endsWithin = (work: Promise<unknown>, ms: number): Promise<boolean> =>
  pTimeout(
    work.then(() => true),
    { milliseconds: Math.max(ms, 1), fallback: () => false },
  );

export interface BackoffLimits {
  readonly firstMs: number;
  readonly mostMs: number;
}

/**
 * Computes the delay before a retry: doubled with each failure, minus a random part of up to half, so that clients that
 * failed together do not retry together.
 * @param failures in a row, from 1
 * @returns milliseconds, at least half of `firstMs`
 */
export function backoffMs(failures: number, { firstMs, mostMs }: BackoffLimits): number {
  const full = Math.min(mostMs, firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.ceil(full / 2) + randomInt(0, Math.floor(full / 2) + 1);
}

/** A pause is this many times as long as the work before it. */
const REST = 3;

/**
 * Passes items on with a pause after each hundred, or `atOnce`, for work that may take minutes: requests that the same process and
 * database answer wait for no more than those.
 */
export async function* throttled<T>(items: AsyncIterable<T>, atOnce = 100): AsyncGenerator<T> {
  let begun = performance.now();
  let taken = 0;
  for await (const item of items) {
    yield item;
    taken += 1;
    if (taken % atOnce !== 0) continue;
    await pause(REST * (performance.now() - begun));
    begun = performance.now();
  }
}

/** A wait that can be ended early. */
export interface Wakeup {
  /** Resolves after `ms`, on `wake`, or when `signal` aborts; at once if woken since the last wait. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
  wake(): void;
}

export function createWakeup(): Wakeup {
  let isSet = false;
  let end: (() => void) | null = null;
  return {
    wake: () => {
      isSet = true;
      end?.();
    },
    wait: (ms, signal) =>
      new Promise((resolve) => {
        const timer = setTimeout(done, ms);
        signal?.addEventListener('abort', done);
        end = done;
        if (isSet || signal?.aborted) done();
        function done(): void {
          clearTimeout(timer);
          signal?.removeEventListener('abort', done);
          isSet = false;
          end = null;
          resolve();
        }
      }),
  };
}
