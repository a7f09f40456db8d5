import { DAY, MINUTE } from '../../domain/kernel/time.ts';
import {
  type Quota,
  type RateLimiter,
  retrySeconds,
  type Verdict,
} from '../../platform/limits/rate-limit.ts';
import type { Caller, Route } from '../contract/route.ts';
import type { ErrorCode } from '../errors/error-catalog.ts';
import type { AdmissionDeps, Inadmissible } from './admission.ts';

interface Ceilings {
  readonly API_REQUESTS_PER_SECOND: number;
  readonly WEBHOOK_MANAGEMENT_PER_MINUTE: number;
}

/** A rate of all keys of a partner together. */
interface Budget {
  readonly ceiling: number;
  readonly windowMs: number;
  readonly code: ErrorCode;
}

/**
 * Changes of a partner's trackers, domains and keys, whose events are kept for ever: at a key's usual rate they would take 50 GB a
 * day.
 */
const CHANGES_PER_DAY = 10_000;

const budgetOf = (budget: NonNullable<Route['budget']>, partnerId: string): string =>
  `${budget} of ${partnerId}`;

/** Counts a change of a partner's keys, which users of the dashboard make. @returns whether it may be made */
export const admitChange = async (
  { admit }: Pick<RateLimiter, 'admit'>,
  partnerId: string,
): Promise<boolean> => (await admit(budgetOf('changes', partnerId), CHANGES_PER_DAY, DAY)) === null;

/**
 * Creates the rates of a partner's calls: the key's or user's own, then the partner's budget, then the service's, so that a greedy
 * key takes nothing from other partners. Synchronous where possible, because a promise per request is measurable.
 */
export function createCallRates(
  { admit, quota }: RateLimiter,
  { API_REQUESTS_PER_SECOND, WEBHOOK_MANAGEMENT_PER_MINUTE }: Ceilings,
): Pick<AdmissionDeps, 'admit' | 'quotaOf'> {
  const budgets: Record<NonNullable<Route['budget']>, Budget> = {
    webhooks: {
      ceiling: WEBHOOK_MANAGEMENT_PER_MINUTE,
      windowMs: MINUTE,
      code: 'webhook_management_limit',
    },
    changes: { ceiling: CHANGES_PER_DAY, windowMs: DAY, code: 'rate_limit' },
  };
  const spendApi = () => spend('api_rate_limit', admit('api', API_REQUESTS_PER_SECOND), admitted);
  return {
    admit: (caller, { budget }) =>
      spend('rate_limit', admit(textsOf(caller).name, perSecond(caller)), () => {
        if (budget === undefined) return spendApi();
        const { ceiling, windowMs, code } = budgets[budget];
        return spend(code, admit(budgetOf(budget, caller.partner_id), ceiling, windowMs), spendApi);
      }),
    quotaOf: (caller, { budget }) => {
      const { name, policy } = textsOf(caller);
      const limit = `"key"${shown(quota(name, perSecond(caller)))}`;
      if (budget === undefined) return { policy, limit };
      const { ceiling, windowMs } = budgets[budget];
      const left = quota(budgetOf(budget, caller.partner_id), ceiling, windowMs);
      return {
        policy: `${policy}, "${budget}";q=${ceiling};w=${windowMs / 1_000}`,
        limit: `${limit}, "${budget}"${shown(left)}`,
      };
    },
  };
}

/** Enough for a person at a browser; a page makes a few calls. */
const USER_CALLS_PER_SECOND = 50;

const perSecond = (caller: Caller): number =>
  caller.kind === 'key' ? caller.requests_per_second : USER_CALLS_PER_SECOND;

/** Kept per caller object: hashing a new string costs a tenth of a microsecond for each use. */
const texts = new WeakMap<Caller, { readonly name: string; readonly policy: string }>();
function textsOf(caller: Caller) {
  const known = texts.get(caller);
  if (known !== undefined) return known;
  const name = caller.kind === 'key' ? `key ${caller.key_id}` : `user ${caller.user_id}`;
  const made = { name, policy: `"key";q=${perSecond(caller)};w=1` };
  texts.set(caller, made);
  return made;
}

const shown = ({ left, resetMs }: Quota): string => `;r=${left};t=${Math.ceil(resetMs / 1_000)}`;

const admitted = (): null => null;

function spend(
  code: ErrorCode,
  verdict: Verdict | Promise<Verdict>,
  next: () => Inadmissible | null | Promise<Inadmissible | null>,
): Inadmissible | null | Promise<Inadmissible | null> {
  if (verdict instanceof Promise) return verdict.then((later) => spend(code, later, next));
  return verdict === null ? next() : { code, retryAfter: retrySeconds(verdict) };
}
