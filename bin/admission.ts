import { DAY, MINUTE } from '../domain/kernel/time.ts';
import type { ErrorCode } from '../http/error-catalog.ts';
import type { CallingKey, Route } from '../http/route.ts';
import type { Config } from '../platform/config.ts';
import type { Verdict } from '../platform/rate-limit.ts';

type Admit = (name: string, ceiling: number, windowMs?: number) => Verdict | Promise<Verdict>;
type Refusal = { readonly code: ErrorCode; readonly retryAfter: number } | null;

/**
 * Changes of a partner's trackers and domains, whose events are kept for ever: at a key's usual rate they would take 50 GB a
 * day.
 */
const CHANGES_PER_DAY = 10_000;

/**
 * Checks the key's rate, then the partner's budget, then the service's, so that a greedy key takes nothing from other
 * partners. Synchronous where possible, because a promise per request is measurable.
 */
export const admission = (
  admit: Admit,
  ceilings: Pick<Config, 'API_REQUESTS_PER_SECOND' | 'WEBHOOK_MANAGEMENT_PER_MINUTE'>,
) => {
  const api = () => spend('api_rate_limit', admit('api', ceilings.API_REQUESTS_PER_SECOND), admitted);
  const webhooks = (partnerId: string) => () =>
    spend(
      'webhook_management_limit',
      admit(`webhooks of ${partnerId}`, ceilings.WEBHOOK_MANAGEMENT_PER_MINUTE, MINUTE),
      api,
    );
  const changes = (partnerId: string) => () =>
    spend('rate_limit', admit(`changes of ${partnerId}`, CHANGES_PER_DAY, DAY), api);
  const next = ({ partner_id }: CallingKey, budget: Route['budget']) => {
    if (budget === undefined) return api;
    return budget === 'webhooks' ? webhooks(partner_id) : changes(partner_id);
  };
  return (key: CallingKey, { budget }: Route) =>
    spend('rate_limit', admit(`key ${key.key_id}`, key.requests_per_second), next(key, budget));
};

const admitted = (): null => null;

const spend = (
  code: ErrorCode,
  verdict: Verdict | Promise<Verdict>,
  next: () => Refusal | Promise<Refusal>,
): Refusal | Promise<Refusal> => {
  if (verdict instanceof Promise) return verdict.then((later) => spend(code, later, next));
  return verdict === null ? next() : { code, retryAfter: Math.ceil(verdict.retryMs / 1_000) };
};
