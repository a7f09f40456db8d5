import { pause } from './pause.ts';

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
