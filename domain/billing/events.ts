import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';

const digest = z.string().regex(/^[0-9a-f]{64}$/);
/** A line of the text that the digest is taken of: never empty, since the empty line stands for null. */
const line = z.string().regex(/^[^\n]+$/);

/**
 * Stream `billing-<partner>`: the partner's ledger, an entry for every completed reveal, in the log's order. The number
 * of an entry is its event's revision. No personal data: it outlives what it speaks of.
 */
export const billingEvents = {
  'billing.RevealBilled.v1': z.object({
    partner_id: z.uuid(),
    reveal_id: z.uuid(),
    tracker_id: z.uuid(),
    /** Whoever asked for the reveal: an API key, or a user of the dashboard. The other is null. */
    key_id: line.nullable(),
    user_id: line.nullable(),
    /** A unit belongs to the month of this instant. */
    completed_at: z.iso.datetime(),
    units: z.union([z.literal(0), z.literal(1)]),
    /** Of the reveal's RevealCompleted in the log, decimal. Rises from entry to entry. */
    position: z.string().regex(/^\d{1,20}$/),
    /** The digest of the entry before; of the first, 64 zeros. */
    previous: digest,
    /** SHA-256 as `docs/auditing.md` defines it. */
    digest,
  }),
} as const;
export type BillingEvent = EventOf<typeof billingEvents>;

export const billingStream = (partnerId: string): string => `billing-${partnerId}`;
