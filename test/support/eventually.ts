import { inspect } from 'node:util';

const POLL_MS = 20;

/**
 * Polls until the condition holds and returns the value; for conditions that become true soon without further action.
 * @throws Error with the last value, when the condition does not hold within `withinMs`
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
