/** Sends the requests of a storm's clients to a random api process, with a time limit, and records them. */
import { type Called, type CallOptions, call } from '../support/call.ts';
import type { Observation, RequestKind } from './observations.ts';
import type { Random } from './random.ts';
import type { Violations } from './violations.ts';

export interface Client {
  /**
   * Sends one request to any api process.
   * @param expected the allowed statuses beside 503
   * @returns null when no answer came: the outcome is unknown
   */
  ask(
    kind: RequestKind,
    expected: readonly number[],
    method: string,
    path: string,
    options?: CallOptions,
  ): Promise<Called | null>;
  /** Records an event that was not a client's request, such as a delivery. */
  observe(observation: Observation): void;
  readonly observations: readonly Observation[];
}

/** Longer than every limit of the service. */
const TIMEOUT_MS = 12_000;

export const createClient = (
  processes: readonly { readonly url: string }[],
  random: Random,
  violations: Violations,
): Client => {
  const observations: Observation[] = [];
  const observe = (observation: Observation): void => void observations.push(observation);
  return {
    observations,
    observe,
    ask: async (kind, expected, method, path, options = {}) => {
      const sentAt = performance.now();
      const { url } = random.pick(processes);
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const answer = await call(url, method, path, { ...options, signal }).catch(() => null);
      const endedAt = performance.now();
      if (answer === null) {
        observe({ kind, sentAt, endedAt, outcome: 'cut' });
        return null;
      }
      const outcome = answer.status === 503 ? 'unavailable' : 'success';
      observe({ kind, sentAt, endedAt, outcome });
      if (answer.status !== 503 && !expected.includes(answer.status)) {
        violations.add(
          'every answer has a status that the contract allows here',
          `${kind}: ${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`,
        );
      }
      return answer;
    },
  };
};
