import { RESULT_PRIVACY } from './webhooks/events.ts';

/**
 * Visibility of event fields. `shown`: to every operator. `personal`: on request; addresses and their digests, labels,
 * URLs, free text of partners or other systems, and sealed data. `secret`: never; also every field missing from this table,
 * into which a test forces every field of every event.
 */
type Sight = 'shown' | 'personal' | 'secret';

/** Names of fields, separated by spaces. A dot descends into an object, a number into a nested list; `*` is any name. */
type Fields = Readonly<Partial<Record<Sight, string>>>;

const within = (object: string, names: string): string =>
  names
    .split(' ')
    .map((name) => `${object}.${name}`)
    .join(' ');

/** Adds fields whose schema says their visibility itself. */
function withStated(shown: string, stated: Readonly<Record<string, Sight>>): Fields {
  const fields: Partial<Record<Sight, string>> = { shown };
  for (const [name, sight] of Object.entries(stated)) fields[sight] = [fields[sight], name].join(' ').trim();
  return fields;
}

const LIMITS = 'requests_per_second new_enrichments_per_day pending_enrichments company_signals expires_at';
const CEILINGS =
  'requests_per_second new_enrichments_per_day pending_enrichments keys domains company_signals';
const RESERVATION = 'reservation_id partner_id key_id submitted_at';
const RESULT = 'match_type company.* network.* enriched_at fresh_until';
const SESSION = 'session_id tracker_id partner_id visit_id visitor_country first_seen_at expires_at';
const REVEAL = 'reveal_id session_id tracker_id partner_id key_id user_id created_at expires_at';
const ENDPOINT = 'webhook_id partner_id';
const DELIVERY = 'delivery_id webhook_id partner_id';
const RECOVERY = 'recovery_id since deliveries held_back';
const SEALED_SECRET = 'master_key_id sealed';
const DOMAIN = 'domain_id hostname';
const USER = 'user_id partner_id';
const INVITATION = 'partner_id invitation_id';

/** Visibility of the metadata of every event. */
export const metadataPrivacy: Fields = {
  shown: '$correlationId $causationId at expires_at partner_id key_id user_id traceparent',
};

/** By the stored type of the event. */
export const eventPrivacy: Readonly<Record<string, Fields>> = {
  'partners.PartnerCreated.v1': { shown: 'partner_id name created_at' },
  'partners.KeyCreated.v1': { shown: `${LIMITS} partner_id key_id name created_at`, secret: 'hash' },
  'partners.KeyUpdated.v1': { shown: `${LIMITS} partner_id key_id updated_at` },
  'partners.KeyRevoked.v1': { shown: 'partner_id key_id revoked_at' },
  'partners.CeilingsSet.v1': { shown: `${CEILINGS} partner_id set_at` },
  'partners.PartnerSuspended.v1': { shown: 'partner_id suspended_at' },
  'partners.PartnerResumed.v1': { shown: 'partner_id resumed_at' },
  'partners.PartnerDeleted.v1': { shown: 'partner_id deleted_at' },
  'partners.PartnerEnded.v1': { shown: 'partner_id ended_at' },
  'partners.PartnerSnapshotted.v1': {
    shown: `name state ${within('ceilings', CEILINGS)} ${within('keys', `${LIMITS} key_id name`)} revoked`,
  },

  'partners.UserCreated.v1': { shown: `${USER} role created_at`, personal: 'name' },
  'partners.UserPasswordReset.v1': { shown: `${USER} reset_at` },
  'partners.UserPasswordChanged.v1': { shown: `${USER} changed_at` },
  'partners.UserRemoved.v1': { shown: `${USER} removed_at` },
  'partners.UserReleased.v1': { shown: `${USER} released_at` },

  'partners.RoleChanged.v1': { shown: `${USER} before role changed_at` },
  'partners.MemberRemoved.v1': { shown: `${USER} role removed_at` },
  'partners.InvitationMade.v1': {
    shown: `${INVITATION} role made_by made_at expires_at`,
    personal: 'note',
    secret: 'digest',
  },
  'partners.InvitationWithdrawn.v1': { shown: `${INVITATION} role withdrawn_at` },
  'partners.InvitationAccepted.v1': { shown: `${INVITATION} user_id role accepted_at` },
  'partners.SecondFactorRequired.v1': { shown: 'partner_id required changed_at' },
  'partners.SecondFactorEnabled.v1': { shown: `${USER} enabled_at` },
  'partners.SecondFactorDisabled.v1': { shown: `${USER} disabled_at` },
  'partners.RecoveryCodesRenewed.v1': { shown: `${USER} renewed_at` },

  'lookup.ReservationMade.v1': { shown: 'reservation_id partner_id key_id kind made_at', personal: 'ip' },
  'lookup.ReservationSettled.v1': { shown: 'reservation_id partner_id settled_at' },
  'lookup.ReservationsErased.v1': { shown: 'partner_id reservation_ids erased_at' },
  'lookup.IntakeSnapshotted.v1': {
    shown: 'day used_today.* earlier.day earlier.used.* keys open.0 open.2 open.3',
    personal: 'open.1',
  },
  'lookup.EnrichmentRequested.v1': {
    shown: `round kind requested_at ${within('reservation', RESERVATION)}`,
    personal: 'ip',
  },
  'lookup.EnrichmentJoined.v1': {
    shown: `round attempts ${within('reservation', RESERVATION)}`,
    personal: 'ip',
  },
  'lookup.EnrichmentAttemptFailed.v1': {
    shown: 'round attempt failed_at next_attempt_at failures.provider answered',
    personal: 'ip failures.reason',
  },
  'lookup.EnrichmentCompleted.v1': {
    shown: `round attempt ${within('result', `${RESULT} sources needs_company_enrichment answered_by`)} ${within('settles', RESERVATION)}`,
    personal: 'result.ip',
  },
  'lookup.EnrichmentSnapshotted.v1': {
    shown: `round gave_up_at ${within('result', `${RESULT} sources needs_company_enrichment answered_by`)} ${within('settles', RESERVATION)}`,
    personal: 'result.ip',
  },
  'lookup.EnrichmentGaveUp.v1': {
    shown: `round attempt kind gave_up_at failures.provider ${within('settles', RESERVATION)}`,
    personal: 'ip failures.reason',
  },
  'lookup.ResultForgotten.v1': { shown: 'forgotten_at', personal: 'ip' },

  'usage.LookupsCounted.v1': { shown: 'counts.*' },
  'usage.LookupsCorrected.v1': { shown: 'counts.*' },
  'usage.LookupsTotalled.v1': { shown: 'part parts counts.*' },
  'usage.TrackerCallsCounted.v1': { shown: 'counts.*' },
  'usage.TrackerCallsCorrected.v1': { shown: 'counts.*' },
  'usage.TrackerCallsTotalled.v1': { shown: 'part parts counts.*' },
  'usage.TrackerDayClosed.v1': { shown: 'day part parts counts.*' },
  'usage.TrackerHoursMarked.v1': { shown: 'partner_id mark_id hours.*' },
  'usage.TrackerHoursKept.v1': { shown: 'partner_id mark_id counts.*' },

  'trackers.TrackerCreated.v1': {
    shown: 'tracker_id partner_id name origins created_at',
    personal: 'customer_reference',
  },
  'trackers.TrackerUpdated.v1': {
    shown: 'tracker_id partner_id name origins updated_at',
    personal: 'customer_reference',
  },
  'trackers.TrackerDisabled.v1': { shown: 'tracker_id partner_id disabled_at' },
  'trackers.TrackerEnabled.v1': { shown: 'tracker_id partner_id enabled_at' },
  'trackers.TrackerDeleted.v1': { shown: 'tracker_id partner_id deleted_at' },
  'trackers.TrackersSnapshotted.v1': {
    shown: `${within('trackers', 'tracker_id name origins created_at disabled_at')} deleted.0 deleted.1`,
    personal: 'trackers.customer_reference',
  },
  'trackers.TrackersSnapshotPart.v1': {
    shown: `${within('trackers', 'tracker_id name origins created_at disabled_at')} deleted.0 deleted.1 part parts`,
    personal: 'trackers.customer_reference',
  },

  'sessions.SessionCreated.v1': { shown: SESSION, personal: 'visitor sealed' },
  'sessions.SessionVisited.v1': { shown: `${SESSION} seen_at`, personal: 'visitor' },
  'sessions.SessionKept.v1': { shown: `${SESSION} seen_at position visits`, personal: 'visitor sealed' },
  'sessions.SessionsExpired.v1': { shown: 'partner_id sessions.* reason' },

  'reveals.RevealRequested.v1': { shown: REVEAL },
  'reveals.RevealCompleted.v1': {
    shown: `${REVEAL} completed_at billable ${within('result', `${RESULT} status company_found stale refresh_status refresh_error`)}`,
  },
  'reveals.RevealsExpired.v1': { shown: 'partner_id reveals.* reason' },

  'epochs.EpochBegan.v1': { shown: 'epoch_id after' },

  'billing.RevealBilled.v1': {
    shown: 'partner_id reveal_id tracker_id key_id user_id completed_at units position previous digest',
  },
  'billing.AuditRequested.v1': { shown: 'partner_id requested_at' },
  'billing.LedgerAnchored.v1': {
    shown: 'partner_id made_at entries units head_digest public_key signature',
  },

  'webhooks.EndpointCreated.v1': {
    shown: `${ENDPOINT} name events tracker_id created_at`,
    personal: 'url',
    secret: within('secret', SEALED_SECRET),
  },
  'webhooks.EndpointUpdated.v1': { shown: `${ENDPOINT} name events enabled updated_at` },
  'webhooks.SecretRotated.v1': {
    shown: `${ENDPOINT} rotated_at rotation_until`,
    secret: within('secret', SEALED_SECRET),
  },
  'webhooks.SecretsResealed.v1': {
    shown: ENDPOINT,
    secret: `${within('secret', SEALED_SECRET)} ${within('previous', SEALED_SECRET)}`,
  },
  'webhooks.EndpointDeleted.v1': { shown: `${ENDPOINT} deleted_at` },
  'webhooks.RecoveryRequested.v1': { shown: `${ENDPOINT} ${RECOVERY} requested_at` },
  'webhooks.RecoveryCompleted.v1': { shown: `${ENDPOINT} recovery_id completed_at` },
  'webhooks.EndpointsSnapshotted.v1': {
    shown: `${within(
      'endpoints',
      'webhook_id name events tracker_id enabled created_at updated_at deleted_at secret_rotation_until',
    )} ${within('endpoints.recovery', `${RECOVERY} requested_at completed_at`)}`,
    personal: 'endpoints.url',
    secret: `${within('endpoints.secret', SEALED_SECRET)} ${within('endpoints.previous', SEALED_SECRET)}`,
  },
  'webhooks.PayloadStored.v1': {
    shown: 'event_id partner_id type day bytes created_at expires_at',
    personal: 'sealed',
  },
  'webhooks.PayloadsExpired.v1': { shown: 'partner_id events.* reason' },
  'webhooks.DeliveryQueued.v1': {
    shown: `${DELIVERY} event_id type created_at payload_expires_at source_position`,
  },
  'webhooks.DeliveryAttempted.v1': withStated(
    `${DELIVERY} cycle attempt started_at ended_at state next_attempt_at`,
    RESULT_PRIVACY,
  ),
  'webhooks.DeliveryRetried.v1': { shown: `${DELIVERY} cycle retried_at` },
  'webhooks.DeliveriesRetried.v1': {
    shown: `${ENDPOINT} recovery_id since requested_at retried_at deliveries.*`,
  },
  'webhooks.DeliveriesExpired.v1': { shown: `${ENDPOINT} delivery_ids` },

  'domains.DomainClaimed.v1': { shown: `${DOMAIN} tracker_id partner_id claimed_at` },
  'domains.DomainLookChanged.v1': { shown: `${DOMAIN} error looked_at` },
  'domains.DomainActivated.v1': { shown: `${DOMAIN} activated_at` },
  'domains.DomainFailed.v1': { shown: `${DOMAIN} error failed_at` },
  'domains.DomainReleased.v1': { shown: `${DOMAIN} tracker_id released_at` },
  'domains.NameSnapshotted.v1': {
    shown: `${within(
      'claims',
      `${DOMAIN} tracker_id partner_id status created_at claimed_at activated_at last_error missed_since changed_at`,
    )} owners`,
  },
  'domains.PlaceTaken.v1': { shown: `${DOMAIN} tracker_id partner_id taken_at proven` },
  'domains.PlaceFreed.v1': { shown: `${DOMAIN} tracker_id freed_at` },
  'domains.PlacesClosed.v1': { shown: 'tracker_id closed_at' },
  'domains.PlacesSnapshotted.v1': {
    shown: `closed ${within('held', DOMAIN)} ${within('freed', `${DOMAIN} freed_at`)}`,
  },

  'signals.SignalsKept.v1': {
    shown: 'day batch clues.submitted clues.occurred_at',
    personal: `${within('clues', 'event_id visitor domain site page_run sealed')} left_out`,
  },
  'signals.SignalsObserved.v1': {
    shown: 'day clues.submitted clues.occurred_at',
    personal: `${within('clues', 'event_id visitor domain site page_run sealed')} left_out`,
  },
};

const MASKED = '(masked)';
const SECRET = '(secret)';

interface Rule {
  readonly path: readonly string[];
  readonly sight: Sight;
}

/** Parses the rules of an event; none for an unknown type. */
export const rulesOf = (fields: Readonly<Partial<Record<Sight, string>>> | undefined): Rule[] =>
  Object.entries(fields ?? {}).flatMap(([sight, names]) =>
    names.split(' ').map((name) => ({ path: name.split('.'), sight: sight as Sight })),
  );

/** Selects the rules below `name`. */
export const into = (rules: readonly Rule[], name: string): Rule[] =>
  rules
    .filter(({ path: [first] }) => first === name || first === '*')
    .map(({ path, sight }) => ({ path: path.slice(1), sight }));

/** Masks an event's data and metadata. Personal fields are shown if `unmasked`; secret and unlisted ones never are. */
export function maskEvent(
  { type, data, metadata }: { readonly type: string; readonly data: object; readonly metadata: object },
  unmasked: boolean,
): { readonly data: unknown; readonly metadata: unknown } {
  const known = Object.hasOwn(eventPrivacy, type) ? eventPrivacy[type] : undefined;
  return {
    data: mask(data, rulesOf(known), unmasked),
    metadata: mask(metadata, rulesOf(metadataPrivacy), unmasked),
  };
}

function mask(value: unknown, rules: readonly Rule[], unmasked: boolean): unknown {
  if (value === null) return null;
  const own = rules.find(({ path }) => path.length === 0);
  if (own?.sight === 'personal') return unmasked ? value : MASKED;
  if (rules.length === 0 || own?.sight === 'secret') return SECRET;
  if (Array.isArray(value)) return value.map((item) => maskItem(item, rules, unmasked));
  if (typeof value !== 'object') return own ? value : SECRET;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, mask(inner, into(rules, name), unmasked)]),
  );
}

const maskItem = (item: unknown, rules: readonly Rule[], unmasked: boolean): unknown =>
  Array.isArray(item)
    ? item.map((inner, index) => mask(inner, into(rules, String(index)), unmasked))
    : mask(item, rules, unmasked);
