import { type Enrichment, wantedWork } from '../../domain/lookup/enrichment.ts';
import type { Reservation } from '../../domain/lookup/events.ts';
import { isStale } from '../../domain/lookup/result.ts';
import type { RevealResult } from '../../domain/reveals/events.ts';
import { type EnrichmentSources, loadEnrichment } from './generations.ts';

/**
 * Returns the saved result of a public address, stale or not, as the partner's reveal will show it; null if there is none.
 * Reads the address's stream, because completing a reveal must not depend on a read model. Running enrichments are
 * visible only to partners with a reservation (contract, Lookup 4). `at` in milliseconds.
 */
export const savedForReveal = async (
  { configured, ...streams }: EnrichmentSources,
  ip: string,
  partnerId: string,
  at: number,
): Promise<RevealResult | null> => {
  const { state } = await loadEnrichment(streams, ip);
  const { saved } = state;
  if (saved === null) return null;
  return {
    status: 'complete',
    match_type: saved.match_type,
    company_found: saved.match_type === 'company',
    enriched_at: saved.enriched_at,
    company: saved.company,
    network: saved.network,
    stale: isStale(saved, at),
    fresh_until: saved.fresh_until,
    ...refreshOf(state, { partnerId, at, configured: configured() }),
  };
};

const refreshOf = (
  state: Enrichment,
  { partnerId, at, configured }: { partnerId: string; at: number; configured: readonly string[] },
): Pick<RevealResult, 'refresh_status' | 'refresh_error'> => {
  const theirs = ({ partner_id }: Reservation): boolean => partner_id === partnerId;
  const { open, gave_up_at, settled } = state;
  if (wantedWork(state, at, configured) === null)
    return { refresh_status: 'not_needed', refresh_error: null };
  if (open?.reservations.some(theirs)) return { refresh_status: 'pending', refresh_error: null };
  if (open === null && gave_up_at !== null && settled.some(theirs)) {
    return { refresh_status: 'deferred', refresh_error: 'lookup_failed' };
  }
  return { refresh_status: 'not_requested', refresh_error: null };
};
