import { type Enrichment, wantedWork } from '../../domain/lookup/enrichment.ts';
import type { Reservation } from '../../domain/lookup/events.ts';
import { isStale } from '../../domain/lookup/result.ts';
import type { RevealResult } from '../../domain/reveals/events.ts';
import type { Position } from '../../event-store/port.ts';
import type { CommandContext } from '../handle.ts';
import {
  type EnrichmentSources,
  type EnrichmentStreams,
  handleEnrichment,
  loadEnrichment,
} from './enrichment-streams.ts';
import type { WorkCapacity } from './submit-lookup.ts';

interface RevealIntake extends EnrichmentStreams {
  readonly capacity: WorkCapacity;
  /** Returns whether the partner may have one more enrichment for reveals requested and unfinished. */
  readonly hasRoom: (partnerId: string) => Promise<boolean>;
}

/**
 * Requests the enrichment for a reveal, unless a result or an enrichment exists. It uses the shared intake and none of the
 * partner's lookup limits (contract, Reveals 4). Idempotent. The partner is not stored with the enrichment.
 * @returns false if the reveals' half of the intake, or the partner's number of unfinished requests, is used up
 */
export async function requestForReveal(
  { capacity, hasRoom, ...streams }: RevealIntake,
  ip: string,
  partnerId: string,
  context: CommandContext,
): Promise<boolean> {
  const known = await loadEnrichment(streams, ip);
  if (known.state.saved || known.state.open) return true;
  if (!(await hasRoom(partnerId))) return false;
  const slot = await capacity.admit(ip, 'reveal');
  if (!slot.ok) return false;
  let position: Position | null = null;
  try {
    // Nothing is saved, so no configured provider's answer can be missing in it.
    const command = { type: 'Submit', ip, reservation: null, configured: [], at: context.at } as const;
    ({ position } = await handleEnrichment(streams, ip, command, context, known));
    return true;
  } finally {
    slot.finished(position);
  }
}

/**
 * Returns the saved result of a public address, stale or not, as the partner's reveal will show it; null if there is none.
 * Reads the address's stream, because completing a reveal must not depend on a read model. Running enrichments are
 * visible only to partners with a reservation (contract, Lookup 4). `at` in milliseconds.
 */
export async function savedForReveal(
  { configured, ...streams }: EnrichmentSources,
  ip: string,
  partnerId: string,
  at: number,
): Promise<RevealResult | null> {
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
}

function refreshOf(
  state: Enrichment,
  { partnerId, at, configured }: { partnerId: string; at: number; configured: readonly string[] },
): Pick<RevealResult, 'refresh_status' | 'refresh_error'> {
  const theirs = ({ partner_id }: Reservation): boolean => partner_id === partnerId;
  const { open, gave_up_at, settled } = state;
  if (wantedWork(state, at, configured) === null)
    return { refresh_status: 'not_needed', refresh_error: null };
  if (open?.reservations.some(theirs)) return { refresh_status: 'pending', refresh_error: null };
  if (open === null && gave_up_at !== null && settled.some(theirs)) {
    return { refresh_status: 'deferred', refresh_error: 'lookup_failed' };
  }
  return { refresh_status: 'not_requested', refresh_error: null };
}
