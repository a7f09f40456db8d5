import type { Position } from '../../event-store/port.ts';
import type { CommandContext } from '../handle.ts';
import { type EnrichmentStreams, handleEnrichment, loadEnrichment } from './generations.ts';
import type { WorkCapacity } from './submit-lookup.ts';

/**
 * Asks for the enrichment that a reveal waits for, unless something is saved or under way: it counts against the shared
 * intake and against nothing of a partner's (decisions, Sessions and reveals). false: the intake, or the partner's part
 * of it, is full just now. Repeating it changes nothing.
 * @param partnerId whose reveal it is: known to the rate alone, and to no event of the work
 */
export const requestForReveal = async (
  { capacity, ...streams }: EnrichmentStreams & { readonly capacity: WorkCapacity },
  ip: string,
  partnerId: string,
  context: CommandContext,
): Promise<boolean> => {
  const known = await loadEnrichment(streams, ip);
  if (known.state.saved || known.state.open) return true;
  const slot = await capacity.admit(ip, `reveals of ${partnerId}`);
  if (!slot.ok) return false;
  let position: Position | null = null;
  try {
    const command = { type: 'Submit', ip, reservation: null, at: context.at } as const;
    ({ position } = await handleEnrichment(streams, ip, command, context, known));
    return true;
  } finally {
    slot.finished(position);
  }
};
