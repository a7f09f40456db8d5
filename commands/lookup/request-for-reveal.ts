import type { Position } from '../../event-store/port.ts';
import type { CommandContext } from '../handle.ts';
import { type EnrichmentStreams, handleEnrichment, loadEnrichment } from './generations.ts';
import type { WorkCapacity } from './submit-lookup.ts';

/** Whose reveal it is must not be known to the work: all of them share one part of the intake. */
const REVEALS = 'reveals';

/**
 * Asks for the enrichment that a reveal waits for, unless something is saved or under way: it counts against the shared
 * intake and against nothing of a partner's (decisions, Sessions and reveals). false: the intake is full just now.
 * Repeating it changes nothing.
 */
export const requestForReveal = async (
  { capacity, ...streams }: EnrichmentStreams & { readonly capacity: WorkCapacity },
  ip: string,
  context: CommandContext,
): Promise<boolean> => {
  const known = await loadEnrichment(streams, ip);
  if (known.state.saved || known.state.open) return true;
  const slot = await capacity.admit(ip, REVEALS);
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
