import type { Outcome } from '../../domain/usage/events.ts';
import type { KeyRequest, KeyRoute, Reply } from '../../http/contract/route.ts';
import type { CluesOf } from '../../http/contract/schemas/company-signals.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { outcomeOf } from './answer.ts';
import { withClues } from './with-clues.ts';

export type CountLookup = (lookup: {
  readonly keyId: string;
  readonly outcome: Outcome;
  readonly served: boolean;
  readonly durationMs: number;
}) => Promise<void>;

/**
 * Counts every answer to an authenticated lookup durably before it is sent (contract, Lookup 9), and waits for
 * `ready`; gives those of enabled keys their clues.
 */
export const countBeforeSend = (
  count: CountLookup,
  cluesOf: CluesOf,
): NonNullable<KeyRoute['beforeSend']> => {
  const counted = counting(count);
  return (request, answer) =>
    request.caller.company_signals
      ? withClues(request, answer, counted(request, answer), cluesOf)
      : counted(request, answer);
};

const counting =
  (count: CountLookup) =>
  async (request: KeyRequest, answer: Reply): Promise<Reply> => {
    const durationMs = performance.now() - request.startedAt;
    try {
      const counted = count({ keyId: request.caller.key_id, ...pick(answer), durationMs });
      if ('ready' in answer) await Promise.all([counted, answer.ready]);
      else await counted;
      return answer;
    } catch {
      return refusal(request, 'usage_unavailable');
    }
  };

const pick = (answer: Reply) => {
  const { outcome, served } = outcomeOf(answer);
  return { outcome, served };
};
