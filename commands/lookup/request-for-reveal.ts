import { enrichmentStream } from '../../domain/lookup/enrichment.ts';
import { type CommandContext, handle, load } from '../handle.ts';
import { enrichmentAggregate, type LookupStreams } from './aggregates.ts';
import type { WorkCapacity } from './submit-lookup.ts';

/** Whose reveal it is must not be known to the work: all of them share one part of the intake. */
const REVEALS = 'reveals';

/**
 * Asks for the enrichment that a reveal waits for, unless something is saved or under way: it counts against the shared
 * intake and against nothing of a partner's (decisions, Sessions and reveals). false: the intake is full just now.
 * Repeating it changes nothing.
 */
export const requestForReveal = async (
  { store, digest, capacity }: Pick<LookupStreams, 'store' | 'digest'> & { readonly capacity: WorkCapacity },
  ip: string,
  context: CommandContext,
): Promise<boolean> => {
  const stream = enrichmentStream(digest(ip));
  const known = await load(store, enrichmentAggregate, stream);
  if (known.state.saved || known.state.open) return true;
  const slot = await capacity.admit(ip, REVEALS);
  if (!slot.ok) return false;
  let position = null;
  try {
    const command = { type: 'Submit', ip, reservation: null, at: context.at } as const;
    const handled = await handle(store, enrichmentAggregate, stream, command, context, known);
    position = handled.ok ? handled.value.position : null;
    return true;
  } finally {
    slot.finished(position);
  }
};
