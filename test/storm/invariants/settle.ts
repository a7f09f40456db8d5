import { setTimeout as pause } from 'node:timers/promises';

const POLL_MS = 250;
const WORKERS = 8;

/** Polls until nothing is left or the time limit has passed. @returns what is left */
export const settle = async <T>(ask: () => Promise<readonly T[]>, limitMs: number): Promise<readonly T[]> => {
  const end = performance.now() + limitMs;
  for (;;) {
    const left = await ask();
    if (left.length === 0 || performance.now() > end) return left;
    await pause(POLL_MS);
  }
};

/** Handles all items with limited concurrency. */
export const forEachConcurrently = async <T>(
  items: Iterable<T>,
  handle: (item: T) => Promise<void>,
): Promise<void> => {
  const left = [...items].reverse();
  const work = async (): Promise<void> => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await handle(item);
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
};

/** Calls until there is a result. @throws after `limitMs` */
export const untilAnswered = async <T>(
  what: string,
  ask: () => Promise<T | null>,
  limitMs = 60_000,
): Promise<T> => {
  const end = performance.now() + limitMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    if (performance.now() > end) throw new Error(`no answer within ${limitMs / 1_000} s: ${what}`);
    await pause(POLL_MS);
  }
};
