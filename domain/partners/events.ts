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
  /** The fold so far: commands start from the newest one. Events before it stay, for rebuilds. */
  'partners.PartnerSnapshotted.v1': z.object({
    name: z.string(),
    keys: z.array(keyLimitsSchema.extend({ key_id: z.string(), name: z.string() })),
    /** Ids of revoked keys. */
    revoked: z.array(z.string()),
  }),
} as const;
export type PartnerEvent = EventOf<typeof partnerEvents>;

/** Stream `user-<uuidv5 of the name>`, whose UUID is the user's id: a person who logs in to the dashboard. */
export const userEvents = {
  'partners.UserCreated.v1': z.object({
    user_id: z.uuid(),
    partner_id: z.uuid(),
    name: z.string(),
    created_at: z.iso.datetime(),
  }),
  /** An operator gave the user a new first password. No event holds a password, in whatever form. */
  'partners.UserPasswordReset.v1': z.object({
    user_id: z.uuid(),
    partner_id: z.uuid(),
    reset_at: z.iso.datetime(),
  }),
  'partners.UserPasswordChanged.v1': z.object({
    user_id: z.uuid(),
    partner_id: z.uuid(),
    changed_at: z.iso.datetime(),
  }),
  'partners.UserRemoved.v1': z.object({
    user_id: z.uuid(),
    partner_id: z.uuid(),
    removed_at: z.iso.datetime(),
  }),
} as const;
export type UserEvent = EventOf<typeof userEvents>;

export const PARTNER_PREFIX = 'partner-';
export const USER_PREFIX = 'user-';
