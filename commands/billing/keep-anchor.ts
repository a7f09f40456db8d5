import { type Anchor, anchorsDecider } from '../../domain/billing/anchors.ts';
import { anchorEvents, anchorsStream } from '../../domain/billing/events.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import { type CommandContext, handle } from '../handle.ts';

/**
 * Keeps an anchor of a partner's ledger, unless one of the same UTC day or a later one is kept.
 * @throws what `handle` throws
 */
export async function keepAnchor(store: EventStore, anchor: Anchor, context: CommandContext): Promise<void> {
  const aggregate = { schemas: anchorEvents, decider: anchorsDecider };
  await handle(store, aggregate, anchorsStream(anchor.partner_id), { type: 'Keep', anchor }, context);
}

/** Reads the newest kept anchor; null before the first. @throws StoreUnavailable */
export async function readLastAnchor(store: EventStore, partnerId: string): Promise<Anchor | null> {
  for await (const stored of store.readStream(anchorsStream(partnerId), { direction: 'backwards', limit: 1 }))
    return readEvent(anchorEvents, stored)?.data ?? null;
  return null;
}
