import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';
import { secretText, shownText } from '../kernel/visibility.ts';

export const keyLimitsSchema = z.object({
  requests_per_second: z.int().min(1),
  /** null: no limit; 0: saved IPs only. */
  new_enrichments_per_day: z.int().min(0).nullable(),
  pending_enrichments: z.int().min(0),
  company_signals: z.boolean(),
  /** ISO 8601; null: never. */
  expires_at: z.iso.datetime().nullable(),
});
export type KeyLimits = z.output<typeof keyLimitsSchema>;

/** Limits, set by the operator, of what a partner's users may grant to keys, and of the partner's keys and domains. */
export const ceilingsSchema = z.object({
  requests_per_second: z.int().min(1),
  /** null: no ceiling. */
  new_enrichments_per_day: z.int().min(0).nullable(),
  pending_enrichments: z.int().min(0),
  /** Keys that are neither revoked nor expired. */
  keys: z.int().min(0),
  /** Custom domains that are not deleted. */
  domains: z.int().min(0),
  company_signals: z.boolean(),
});
export type Ceilings = z.output<typeof ceilingsSchema>;

/** Ceilings of a partner without its own (contract, Partners 1). */
export const DEFAULT_CEILINGS: Ceilings = {
  requests_per_second: 50,
  new_enrichments_per_day: null,
  pending_enrichments: 10_000,
  keys: 100,
  domains: 100,
  company_signals: false,
};

const ofPartner = { partner_id: z.uuid() } as const;

/** active ⇄ suspended → deleted → ended, and active → deleted. ended: nothing is left but what outlives a partner. */
export const partnerStateSchema = z.enum(['active', 'suspended', 'deleted', 'ended']);
export type PartnerState = z.output<typeof partnerStateSchema>;

/** Stream `partner-<id>`: a partner and its API keys, stored only as hashes. */
export const partnerEvents = {
  'partners.PartnerCreated.v1': z.object({
    partner_id: z.uuid(),
    name: shownText(),
    created_at: z.iso.datetime(),
  }),
  'partners.KeyCreated.v1': keyLimitsSchema.extend({
    partner_id: z.uuid(),
    key_id: shownText(),
    name: shownText(),
    /** SHA-256 of the key, hex. */
    hash: secretText(),
    created_at: z.iso.datetime(),
  }),
  'partners.KeyUpdated.v1': keyLimitsSchema.extend({
    partner_id: z.uuid(),
    key_id: shownText(),
    updated_at: z.iso.datetime(),
  }),
  'partners.KeyRevoked.v1': z.object({
    partner_id: z.uuid(),
    key_id: shownText(),
    revoked_at: z.iso.datetime(),
  }),
  /** Sets all ceilings. */
  'partners.CeilingsSet.v1': ceilingsSchema.extend({ partner_id: z.uuid(), set_at: z.iso.datetime() }),
  /** Keys and pixels are refused, deliveries and reveals wait, users only read. */
  'partners.PartnerSuspended.v1': z.object({ ...ofPartner, suspended_at: z.iso.datetime() }),
  'partners.PartnerResumed.v1': z.object({ ...ofPartner, resumed_at: z.iso.datetime() }),
  /** Revokes all keys and frees the name. What else the partner has is taken apart afterwards, until `PartnerEnded`. */
  'partners.PartnerDeleted.v1': z.object({ ...ofPartner, deleted_at: z.iso.datetime() }),
  /** Nothing is left of a deleted partner but what outlives it: the ledger, counts, anchors. */
  'partners.PartnerEnded.v1': z.object({ ...ofPartner, ended_at: z.iso.datetime() }),
  /** Snapshot of the state, from which commands start. Earlier events stay, for rebuilds. */
  'partners.PartnerSnapshotted.v1': z.object({
    ceilings: ceilingsSchema,
    name: shownText(),
    /** Before 0.3.0 every partner was active. */
    state: partnerStateSchema.default('active'),
    keys: z.array(keyLimitsSchema.extend({ key_id: shownText(), name: shownText() })),
    /** Ids of the keys that were revoked last. */
    revoked: z.array(shownText()),
  }),
} as const;
export type PartnerEvent = EventOf<typeof partnerEvents>;

/** What a user may do: an owner everything; a member all but team and keys; read-only changes and reveals nothing. */
export const roleSchema = z.enum(['owner', 'member', 'read-only']);
export type Role = z.output<typeof roleSchema>;
export const ROLES = roleSchema.options;

const ofUser = { user_id: z.uuid(), partner_id: z.uuid() } as const;

/** Stream `user-<uuidv5 of the name>`, whose UUID is the user's id: a dashboard user. */
export const userEvents = {
  'partners.UserCreated.v1': z.object({
    ...ofUser,
    name: z.string(),
    created_at: z.iso.datetime(),
    /** Before 0.3.0 every user was an owner. */
    role: roleSchema.default('owner'),
  }),
  /** An operator or an owner gave the user a new first password. No event contains a password or its hash. */
  'partners.UserPasswordReset.v1': z.object({ ...ofUser, reset_at: z.iso.datetime() }),
  'partners.UserPasswordChanged.v1': z.object({ ...ofUser, changed_at: z.iso.datetime() }),
  'partners.UserRemoved.v1': z.object({ ...ofUser, removed_at: z.iso.datetime() }),
  /** The user's partner was deleted: the user is gone, and the name free. */
  'partners.UserReleased.v1': z.object({ ...ofUser, released_at: z.iso.datetime() }),
} as const;
export type UserEvent = EventOf<typeof userEvents>;

/** Stream `team-<partner id>`: roles, invitations and second factors of a partner's users. */
export const teamEvents = {
  'partners.RoleChanged.v1': z.object({
    ...ofUser,
    before: roleSchema,
    role: roleSchema,
    changed_at: z.iso.datetime(),
  }),
  'partners.MemberRemoved.v1': z.object({ ...ofUser, role: roleSchema, removed_at: z.iso.datetime() }),
  'partners.InvitationMade.v1': z.object({
    partner_id: z.uuid(),
    invitation_id: z.uuid(),
    role: roleSchema,
    /** The owner, with whose role the invitation ends. null: of an event that did not name one. */
    made_by: z.uuid().nullable().default(null),
    /** Whom it is for, in the owner's words. */
    note: z.string(),
    /** Whether the invited person has to set up a second factor, whatever the team requires. */
    second_factor: z.boolean().default(false),
    /** SHA-256 of the link's token, hex. */
    digest: secretText().regex(/^[0-9a-f]{64}$/),
    made_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
  }),
  'partners.InvitationWithdrawn.v1': z.object({
    partner_id: z.uuid(),
    invitation_id: z.uuid(),
    role: roleSchema,
    withdrawn_at: z.iso.datetime(),
  }),
  /** The user's own stream begins after it. */
  'partners.InvitationAccepted.v1': z.object({
    ...ofUser,
    invitation_id: z.uuid(),
    role: roleSchema,
    accepted_at: z.iso.datetime(),
  }),
  'partners.SecondFactorRequired.v1': z.object({
    partner_id: z.uuid(),
    required: z.boolean(),
    changed_at: z.iso.datetime(),
  }),
  /** No event contains a secret or a recovery code. */
  'partners.SecondFactorEnabled.v1': z.object({ ...ofUser, enabled_at: z.iso.datetime() }),
  'partners.SecondFactorDisabled.v1': z.object({ ...ofUser, disabled_at: z.iso.datetime() }),
  'partners.RecoveryCodesRenewed.v1': z.object({ ...ofUser, renewed_at: z.iso.datetime() }),
} as const;
export type TeamEvent = EventOf<typeof teamEvents>;

export const PARTNER_PREFIX = 'partner-';
export const USER_PREFIX = 'user-';
export const TEAM_PREFIX = 'team-';
