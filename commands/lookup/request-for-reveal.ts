import type { Position } from '../../event-store/port.ts';
import type { CommandContext } from '../handle.ts';
import { type EnrichmentStreams, handleEnrichment, loadEnrichment } from './generations.ts';
import type { WorkCapacity } from './submit-lookup.ts';

export interface RevealIntake extends EnrichmentStreams {
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
