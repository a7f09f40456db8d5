import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';

const digest = z.string().regex(/^[0-9a-f]{64}$/);
/** A line of the digest's text; never empty, because the empty line means null. */
const line = z.string().regex(/^[^\n]+$/);

/**
 * Stream `billing-<partner>`: the partner's ledger, one entry per completed reveal, in log order. An entry's number is its
 * revision. It holds no personal data, because it outlives the reveals.
 */
export const billingEvents = {
  'billing.RevealBilled.v1': z.object({
    partner_id: z.uuid(),
    reveal_id: z.uuid(),
    tracker_id: z.uuid(),
    /** The caller: an API key or a dashboard user; the other is null. */
    key_id: line.nullable(),
    user_id: line.nullable(),
    /** The unit belongs to the month of this instant. */
    completed_at: z.iso.datetime(),
    units: z.union([z.literal(0), z.literal(1)]),
    /** Log position of the reveal's RevealCompleted, decimal; increases from entry to entry. */
    position: z.string().regex(/^\d{1,20}$/),
    /** Digest of the previous entry; 64 zeros in the first. */
    previous: digest,
    /** SHA-256 as `docs/auditing.md` defines it. */
    digest,
  }),
} as const;
export type BillingEvent = EventOf<typeof billingEvents>;

export const billingStream = (partnerId: string): string => `billing-${partnerId}`;

/**
 * Stream `anchors-<partner>`: signed statements of what the partner's ledger was, at most one a UTC day. Partners and auditors
 * keep them outside the operator's reach.
 */
export const anchorEvents = {
  'billing.LedgerAnchored.v1': z.object({
    partner_id: z.uuid(),
    /** Time of the anchor, by the clock of the process that made it. */
    made_at: z.iso.datetime(),
    /** Number of entries of the whole ledger. */
    entries: z.int().nonnegative(),
    units: z.int().nonnegative(),
    /** Digest of the last entry; 64 zeros without entries. */
    head_digest: digest,
    /** Ed25519, SubjectPublicKeyInfo in base64. */
    public_key: z.base64(),
    /** Signature of `anchorText`, in base64. */
    signature: z.base64(),
  }),
} as const;
export type AnchorEvent = EventOf<typeof anchorEvents>;

export const anchorsStream = (partnerId: string): string => `anchors-${partnerId}`;

/** Stream `audits-<partner>`: who had the ledger audited. A verdict is no event: the next audit makes it again. */
export const auditEvents = {
  'billing.AuditRequested.v1': z.object({ partner_id: z.uuid(), requested_at: z.iso.datetime() }),
} as const;
export type AuditEvent = EventOf<typeof auditEvents>;

export const auditsStream = (partnerId: string): string => `audits-${partnerId}`;
