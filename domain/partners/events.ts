import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';

export const keyLimitsSchema = z.object({
  requests_per_second: z.int().min(1),
  /** null: no cap; 0: saved IPs only. */
  new_enrichments_per_day: z.int().min(0).nullable(),
  pending_enrichments: z.int().min(0),
  company_signals: z.boolean(),
  /** ISO 8601; null: never. */
  expires_at: z.iso.datetime().nullable(),
});
export type KeyLimits = z.output<typeof keyLimitsSchema>;

/** Stream `partner-<id>`: a partner and its API keys, of which only hashes are known. */
export const partnerEvents = {
  'partners.PartnerCreated.v1': z.object({
    partner_id: z.uuid(),
    name: z.string(),
    created_at: z.iso.datetime(),
  }),
  'partners.KeyCreated.v1': keyLimitsSchema.extend({
    partner_id: z.uuid(),
    key_id: z.string(),
    name: z.string(),
    /** SHA-256 of the key, hex. */
    hash: z.string(),
    created_at: z.iso.datetime(),
  }),
  'partners.KeyUpdated.v1': keyLimitsSchema.extend({
    partner_id: z.uuid(),
    key_id: z.string(),
    updated_at: z.iso.datetime(),
  }),
  'partners.KeyRevoked.v1': z.object({
    partner_id: z.uuid(),
    key_id: z.string(),
    revoked_at: z.iso.datetime(),
  }),
} as const;
export type PartnerEvent = EventOf<typeof partnerEvents>;

export const PARTNER_PREFIX = 'partner-';
