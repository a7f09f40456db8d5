import { addressOf } from '../support/addresses.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import type { Product } from '../support/product.ts';
import { percentile } from '../support/statistics.ts';
import { capture, createTracker, readFeed } from '../support/tracking.ts';

const RATE = 200;
const LIMIT_MS = 100;
const TICK_MS = 1;
const POLL_MS = 5;
const ALL_SEEN_MS = 10_000;

/**
 * The time from the response of a capture until a client that polls the feed has the session: at 200 captures a
 * second, each a new session.
 */
export const feed: Row = {
  name: 'feed',
  run: async (bench) => {
    const product = await bench.product();
    const waits = await measure(bench, product);
    await product.followed();
    return [toLine(waits)];
  },
};

const measure = async (bench: Bench, product: Product): Promise<Float64Array> => {
  const { warmUpSeconds, rounds, seconds } = bench.effort;
  const total = Math.round(RATE * (warmUpSeconds + (rounds * seconds) / 2));
  const first = bench.freshAddresses(total);
  const tracker = await createTracker(product);
  const acknowledged = new Map<number, number>();
  const seen = new Map<number, number>();
  const captureNumber = async (n: number): Promise<void> => {
    await capture(product, tracker, addressOf(first + n), { n });
    acknowledged.set(n, performance.now());
  };
  await Promise.all([paced(total, captureNumber), poll(product, tracker, total, seen)]);
  const warm = RATE * warmUpSeconds;
  // A session may be seen before the response of its capture.
  const waits = [...acknowledged]
    .filter(([n]) => n >= warm)
    .map(([n, at]) => Math.max(0, (seen.get(n) ?? Number.NaN) - at));
  return Float64Array.from(waits);
};

/** Runs the work of each number when it is due, `RATE` a second. @throws when one of them throws */
const paced = async (total: number, work: (n: number) => Promise<void>): Promise<void> => {
  const startedAt = performance.now();
  const working: Promise<void>[] = [];
  while (working.length < total) {
    const due = Math.min(total, ((performance.now() - startedAt) * RATE) / 1_000);
    while (working.length < due) working.push(work(working.length));
    await pause(TICK_MS);
  }
  await Promise.all(working);
};

/** Follows the feed until it has had this number of sessions, and records when each came. */
const poll = async (
  product: Product,
  tracker: string,
  total: number,
  seen: Map<number, number>,
): Promise<void> => {
  let cursor: string | undefined;
  let lastNewAt = performance.now();
  while (seen.size < total) {
    const page = await readFeed(product, tracker, cursor);
    const now = performance.now();
    for (const { custom } of page.sessions) seen.set(custom.n ?? -1, now);
    cursor = page.next_cursor;
    if (page.sessions.length > 0) lastNewAt = now;
    else if (now - lastNewAt > ALL_SEEN_MS) throw new Error(`the feed shows ${seen.size} of ${total}`);
    if (!page.has_more) await pause(POLL_MS);
  }
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const toLine = (waits: Float64Array): Line => {
  const [p50, p99] = [percentile(waits, 0.5), percentile(waits, 0.99)];
  return {
    row: `capture to feed at ${RATE}/s`,
    ratio: p99 / LIMIT_MS,
    target: { atMost: 1 },
    a: { of: 'p99', value: p99, unit: ' ms' },
    b: { of: 'limit', value: LIMIT_MS, unit: ' ms' },
    notes: [
      `p50 ${p50.toFixed(1)} ms; from the 204 to a page of the feed with the session, polled every ${POLL_MS} ms; ${waits.length} captures`,
    ],
  };
};
