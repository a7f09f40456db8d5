import { inspect } from 'node:util';

const POLL_MS = 20;

/**
 * Asks until the answer is as wished, and gives it; for what happens by itself and soon.
 * @throws Error that tells the last answer, when it is not so within `withinMs`
 */
export const eventually = async <T>(
  what: string,
  ask: () => T | Promise<T>,
  isSo: (answer: T) => boolean = Boolean,
  withinMs = 10_000,
  everyMs = POLL_MS,
): Promise<T> => {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (isSo(answer)) return answer;
    if (performance.now() > deadline) {
      throw new Error(`not within ${withinMs} ms: ${what}; last seen: ${inspect(answer)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
};
