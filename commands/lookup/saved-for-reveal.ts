import { enrichmentStream, wantedWork } from '../../domain/lookup/enrichment.ts';
import { isStale } from '../../domain/lookup/result.ts';
import type { RevealResult } from '../../domain/reveals/events.ts';
import { load } from '../handle.ts';
import { enrichmentAggregate, type LookupStreams } from './aggregates.ts';

/**
 * What is saved of a public address, stale or not, as a partner's reveal shows it from then on; null while nothing is.
 * Read from the address's own stream: what completes a reveal decides on no table. Work under way shows to those alone
 * who have a reservation in it (decisions, Lookup). `at` in milliseconds.
 */
export const savedForReveal = async (
  { store, digest }: Pick<LookupStreams, 'store' | 'digest'>,
  ip: string,
  partnerId: string,
  at: number,
): Promise<RevealResult | null> => {
  const { state } = await load(store, enrichmentAggregate, enrichmentStream(digest(ip)));
  const { saved, open } = state;
  if (saved === null) return null;
  const needed = wantedWork(state, at) !== null;
  const asked = open?.reservations.some(({ partner_id }) => partner_id === partnerId) ?? false;
  return {
    status: 'complete',
    match_type: saved.match_type,
    company_found: saved.match_type === 'company',
    enriched_at: saved.enriched_at,
    company: saved.company,
    network: saved.network,
    stale: isStale(saved, at),
    fresh_until: saved.fresh_until,
    refresh_status: !needed ? 'not_needed' : asked ? 'pending' : 'not_requested',
    refresh_error: null,
  };
};
