import type { Ceilings, KeyLimits } from './events.ts';

/** The ceiling that a user's change of keys would exceed. */
export type CeilingRefusal =
  | 'ceiling_requests_per_second'
  | 'ceiling_new_enrichments_per_day'
  | 'ceiling_pending_enrichments'
  | 'ceiling_company_signals'
  | 'ceiling_keys';

interface Capped {
  readonly ceilings: Ceilings;
  readonly keys: { readonly size: number; values(): Iterable<{ readonly limits: KeyLimits }> };
}

/** Keys that users may leave unrevoked, expired ones included, as a multiple of the ceiling: each takes part in every snapshot. */
const MAX_KEYS_TIMES = 10;

interface KeyChange {
  /** null: the key is new. */
  readonly from: KeyLimits | null;
  readonly to: KeyLimits;
  /** Milliseconds. */
  readonly at: number;
}

const isLive = ({ expires_at }: KeyLimits, at: number): boolean =>
  expires_at === null || Date.parse(expires_at) > at;

/**
 * Returns the first ceiling that a user's change would exceed, or null. Unchanged limits may exceed a ceiling, because the
 * operator has set them.
 */
export const exceededCeiling = (
  { ceilings, keys }: Capped,
  { from, to, at }: KeyChange,
): CeilingRefusal | null => {
  const changes = (name: keyof KeyLimits): boolean => from?.[name] !== to[name];
  if (changes('requests_per_second') && to.requests_per_second > ceilings.requests_per_second) {
    return 'ceiling_requests_per_second';
  }
  const perDay = ceilings.new_enrichments_per_day;
  const wanted = to.new_enrichments_per_day ?? Number.POSITIVE_INFINITY;
  if (changes('new_enrichments_per_day') && perDay !== null && wanted > perDay) {
    return 'ceiling_new_enrichments_per_day';
  }
  if (changes('pending_enrichments') && to.pending_enrichments > ceilings.pending_enrichments) {
    return 'ceiling_pending_enrichments';
  }
  if (changes('company_signals') && to.company_signals && !ceilings.company_signals) {
    return 'ceiling_company_signals';
  }
  if (from === null && keys.size >= MAX_KEYS_TIMES * ceilings.keys) return 'ceiling_keys';
  const isOneMore = isLive(to, at) && !(from !== null && isLive(from, at));
  const live = () => [...keys.values()].filter(({ limits }) => isLive(limits, at)).length;
  return isOneMore && live() >= ceilings.keys ? 'ceiling_keys' : null;
};

/** What any limit may be at most. */
export const LARGEST_LIMIT = 1_000_000_000;

/** Default limits of a new key (contract, Lookup 10). */
export const DEFAULT_LIMITS: KeyLimits = {
  requests_per_second: 50,
  new_enrichments_per_day: null,
  pending_enrichments: 10_000,
  company_signals: false,
  expires_at: null,
};
