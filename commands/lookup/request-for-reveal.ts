import { NIL, v5 } from 'uuid';
import type { Position } from '../../event-store/port.ts';
import type { CommandContext } from '../handle.ts';
import { type EnrichmentStreams, handleEnrichment, loadEnrichment } from './generations.ts';
import type { WorkCapacity } from './submit-lookup.ts';

export interface RevealIntake extends EnrichmentStreams {
  readonly capacity: WorkCapacity;
  /** Returns whether the partner's reveals may ask for more, while others of them wait. */
  readonly hasShare: (partnerId: string) => Promise<boolean>;
}

/** Returns the same uuid for a partner at any time; without the service's key it leads to no partner. */
const pseudonymOf = (partnerId: string, digest: (text: string) => string): string =>
  v5(digest(`reveals of ${partnerId}`), NIL);

/**
 * Requests the enrichment for a reveal, unless a result or an enrichment exists. It uses the shared intake and none of the
 * partner's lookup limits (contract, Reveals 4). Idempotent.
 * @param partnerId the reveal's partner: never stored with the enrichment, but for a keyed pseudonym
 * @returns false if the intake, or the partner's part of it, is full
 */
export const requestForReveal = async (
  { capacity, hasShare, ...streams }: RevealIntake,
  ip: string,
  partnerId: string,
  context: CommandContext,
): Promise<boolean> => {
  const known = await loadEnrichment(streams, ip);
  if (known.state.saved) return true;
  const command = {
    type: 'Submit',
    ip,
    reservation: null,
    askedBy: pseudonymOf(partnerId, streams.digest),
    // Nothing is saved, so no provider's answer can be missing in it.
    configured: [],
    at: context.at,
  } as const;
  if (known.state.open) {
    await handleEnrichment(streams, ip, command, context, known);
    return true;
  }
  if (!(await hasShare(partnerId))) return false;
  const slot = await capacity.admit(ip, `reveals of ${partnerId}`);
  if (!slot.ok) return false;
  let position: Position | null = null;
  try {
    ({ position } = await handleEnrichment(streams, ip, command, context, known));
    return true;
  } finally {
    slot.finished(position);
  }
};
