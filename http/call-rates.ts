import { MINUTE } from '../domain/kernel/time.ts';
import type { Quota, RateLimiter, Verdict } from '../platform/rate-limit.ts';
import type { AdmissionDeps, Inadmissible } from './admission.ts';
import type { ErrorCode } from './error-catalog.ts';
import type { CallingKey } from './route.ts';

interface Ceilings {
  readonly API_REQUESTS_PER_SECOND: number;
  readonly WEBHOOK_MANAGEMENT_PER_MINUTE: number;
}

/**
 * Creates the rates of calls with a key: the key's own, then the partner's budget, then the service's, so that a greedy
 * key takes nothing from other partners. Synchronous where possible, because a promise per request is measurable.
 */
export const createCallRates = (
  { admit, quota }: RateLimiter,
  { API_REQUESTS_PER_SECOND, WEBHOOK_MANAGEMENT_PER_MINUTE }: Ceilings,
): Pick<AdmissionDeps, 'admit' | 'quotaHeaders'> => {
  const api = () => spend('api_rate_limit', admit('api', API_REQUESTS_PER_SECOND), admitted);
  const webhooks = (partnerId: string) => () =>
    spend(
      'webhook_management_limit',
      admit(ofWebhooks(partnerId), WEBHOOK_MANAGEMENT_PER_MINUTE, MINUTE),
      api,
    );
  const webhookPolicy = `, "webhooks";q=${WEBHOOK_MANAGEMENT_PER_MINUTE};w=60`;
  return {
    admit: (key, { budget }) =>
      spend(
        'rate_limit',
        admit(ofKey(key), key.requests_per_second),
        budget === 'webhooks' ? webhooks(key.partner_id) : api,
      ),
    quotaHeaders: (key, { budget }) => {
      const rate = key.requests_per_second;
      const policy = `"key";q=${rate};w=1`;
      const limit = `"key"${shown(quota(ofKey(key), rate))}`;
      if (budget !== 'webhooks') return { 'ratelimit-policy': policy, ratelimit: limit };
      const left = quota(ofWebhooks(key.partner_id), WEBHOOK_MANAGEMENT_PER_MINUTE, MINUTE);
      return { 'ratelimit-policy': policy + webhookPolicy, ratelimit: `${limit}, "webhooks"${shown(left)}` };
    },
  };
};

const ofKey = ({ key_id }: CallingKey): string => `key ${key_id}`;
const ofWebhooks = (partnerId: string): string => `webhooks of ${partnerId}`;

const shown = ({ left, resetMs }: Quota): string => `;r=${left};t=${Math.ceil(resetMs / 1_000)}`;

const admitted = (): null => null;

const spend = (
  code: ErrorCode,
  verdict: Verdict | Promise<Verdict>,
  next: () => Inadmissible | null | Promise<Inadmissible | null>,
): Inadmissible | null | Promise<Inadmissible | null> => {
  if (verdict instanceof Promise) return verdict.then((later) => spend(code, later, next));
  return verdict === null ? next() : { code, retryAfter: Math.ceil(verdict.retryMs / 1_000) };
};
