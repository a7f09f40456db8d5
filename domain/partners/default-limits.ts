import type { KeyLimits } from './events.ts';

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
