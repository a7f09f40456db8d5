import type { StoredEntry } from '../../domain/billing/audit-chain.ts';
import { gatherReceipts, type Receipts } from '../../domain/billing/audit-receipts.ts';
import { billingStream } from '../../domain/billing/events.ts';
import { REVEAL_PREFIX } from '../../domain/reveals/events.ts';
import type { EventStore, Position } from '../../event-store/port.ts';

const BATCH = 2_000;

/** A partner's ledger as it stands in the store, up to a place in the log. Nothing in it is believed. */
export const readLedger = async (
  store: EventStore,
  partnerId: string,
  upTo: Position,
): Promise<StoredEntry[]> => {
  const stored: StoredEntry[] = [];
  for await (const { position, revision, type, data } of store.readStream(billingStream(partnerId))) {
    if (position <= upTo) stored.push({ revision, type, data });
  }
  return stored;
};

/**
 * The partner's reveals that the store still has, up to a place in the log. Goes through the whole log: a table that
 * says where they are would have to be believed.
 */
export const readReceipts = async (
  store: EventStore,
  partnerId: string,
  upTo: Position,
): Promise<Receipts> => {
  const { receipts, add } = gatherReceipts();
  const done = new AbortController();
  const options = { after: null, prefixes: [REVEAL_PREFIX], batchSize: BATCH, signal: done.signal };
  for await (const { events, position } of store.follow(options)) {
    for (const event of events) {
      const isPartners = (event.data as { partner_id?: unknown } | null)?.partner_id === partnerId;
      if (isPartners && event.position <= upTo) add(event);
    }
    if (position >= upTo) done.abort();
  }
  return receipts;
};
