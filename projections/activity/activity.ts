import type pg from 'pg';
import {
  type AuditEvent,
  auditEvents,
  type BillingEvent,
  billingEvents,
} from '../../domain/billing/events.ts';
import {
  type DomainEvent,
  type DomainSlotEvent,
  domainEvents,
  domainSlotEvents,
} from '../../domain/domains/events.ts';
import { type EventSchemas, readEvent } from '../../domain/kernel/events.ts';
import { DAY, utcDay } from '../../domain/kernel/time.ts';
import {
  type Ceilings,
  type KeyLimits,
  type PartnerEvent,
  partnerEvents,
  type TeamEvent,
  teamEvents,
  type UserEvent,
  userEvents,
} from '../../domain/partners/events.ts';
import { type TrackerEvent, trackerEvents } from '../../domain/trackers/events.ts';
import { type EndpointEvent, endpointEvents } from '../../domain/webhooks/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import type { Projection } from '../projection.ts';
import { forgetBefore, toJson } from '../tables.ts';

const schemas = {
  ...partnerEvents,
  ...userEvents,
  ...teamEvents,
  ...trackerEvents,
  ...domainEvents,
  ...domainSlotEvents,
  ...endpointEvents,
  ...billingEvents,
  ...auditEvents,
};
type ActivityEvent =
  | PartnerEvent
  | UserEvent
  | TeamEvent
  | TrackerEvent
  | DomainEvent
  | DomainSlotEvent
  | EndpointEvent
  | BillingEvent
  | AuditEvent;

type SubjectKind = 'partner' | 'key' | 'user' | 'tracker' | 'domain' | 'webhook' | 'reveal';
type Actor = readonly [kind: 'key' | 'user' | 'operator' | 'service', id: string];

interface Activity {
  readonly action: string;
  readonly subject: readonly [kind: SubjectKind, id: string];
  readonly summary?: string;
  /** Actor where the event's metadata name neither a key nor a user. */
  readonly otherwise: 'operator' | 'service' | Actor;
  /** ISO 8601; default: the time of the event. */
  readonly at?: string;
}

/** Describes an event as activity; null: not this one. */
type Describe<Event extends ActivityEvent> = (data: Event['data']) => Activity | null;

/** Every event of these contexts stands here, so that the compiler asks about a new one. null: it is no activity. */
const DESCRIPTIONS: {
  readonly [Type in ActivityEvent['type']]: Describe<Extract<ActivityEvent, { type: Type }>> | null;
} = {
  'partners.PartnerCreated.v1': ({ partner_id }) => byOperator('partner.created', ['partner', partner_id]),
  'partners.CeilingsSet.v1': (data) =>
    byOperator('partner.ceilings_set', ['partner', data.partner_id], ceilingsOf(data)),
  'partners.PartnerSuspended.v1': ({ partner_id }) =>
    byOperator('partner.suspended', ['partner', partner_id]),
  'partners.PartnerResumed.v1': ({ partner_id }) => byOperator('partner.resumed', ['partner', partner_id]),
  'partners.PartnerDeleted.v1': ({ partner_id }) => byOperator('partner.deleted', ['partner', partner_id]),
  'partners.PartnerEnded.v1': null,
  'partners.PartnerSnapshotted.v1': null,
  'partners.KeyCreated.v1': (data) => byOperator('key.created', ['key', data.key_id], limitsOf(data)),
  'partners.KeyUpdated.v1': (data) => byOperator('key.updated', ['key', data.key_id], limitsOf(data)),
  'partners.KeyRevoked.v1': ({ key_id }) => byOperator('key.revoked', ['key', key_id]),

  'partners.UserCreated.v1': ({ user_id, role }) => byOperator('user.created', ['user', user_id], role),
  'partners.UserPasswordReset.v1': ({ user_id }) => byOperator('user.password_reset', ['user', user_id]),
  'partners.UserPasswordChanged.v1': ({ user_id }) => ({
    action: 'user.password_changed',
    subject: ['user', user_id],
    otherwise: ['user', user_id],
  }),
  'partners.UserReleased.v1': null,
  'partners.UserRemoved.v1': ({ user_id }) => byOperator('user.removed', ['user', user_id]),

  'partners.RoleChanged.v1': ({ user_id, before, role }) =>
    byOperator('user.role_changed', ['user', user_id], `${before} → ${role}`),
  // The end of the user's own stream tells it.
  'partners.MemberRemoved.v1': null,
  'partners.InvitationMade.v1': ({ partner_id, role }) =>
    byOperator('invitation.made', ['partner', partner_id], role),
  'partners.InvitationWithdrawn.v1': ({ partner_id, role }) =>
    byOperator('invitation.withdrawn', ['partner', partner_id], role),
  'partners.InvitationAccepted.v1': ({ user_id, role }) =>
    byOperator('invitation.accepted', ['user', user_id], role),
  'partners.SecondFactorRequired.v1': ({ partner_id, required }) =>
    byOperator('team.second_factor', ['partner', partner_id], required ? 'required' : 'not required'),
  'partners.SecondFactorEnabled.v1': ({ user_id }) => byOperator('user.second_factor_on', ['user', user_id]),
  'partners.SecondFactorDisabled.v1': ({ user_id }) =>
    byOperator('user.second_factor_off', ['user', user_id]),
  'partners.RecoveryCodesRenewed.v1': ({ user_id }) => byOperator('user.recovery_codes', ['user', user_id]),

  'trackers.TrackerCreated.v1': ({ tracker_id, origins }) =>
    byService('tracker.created', ['tracker', tracker_id], websites(origins)),
  'trackers.TrackerUpdated.v1': ({ tracker_id, origins }) =>
    byService('tracker.updated', ['tracker', tracker_id], websites(origins)),
  'trackers.TrackerDisabled.v1': ({ tracker_id }) => byService('tracker.disabled', ['tracker', tracker_id]),
  'trackers.TrackerEnabled.v1': ({ tracker_id }) => byService('tracker.enabled', ['tracker', tracker_id]),
  'trackers.TrackerDeleted.v1': ({ tracker_id }) => byService('tracker.deleted', ['tracker', tracker_id]),
  'trackers.TrackersSnapshotted.v1': null,
  'trackers.TrackersSnapshotPart.v1': null,

  'domains.DomainClaimed.v1': ({ domain_id, hostname }) =>
    byService('domain.added', ['domain', domain_id], hostname),
  'domains.DomainLookChanged.v1': null,
  'domains.DomainActivated.v1': ({ domain_id, hostname }) =>
    byService('domain.activated', ['domain', domain_id], hostname),
  // The metadata of a claim that lost its name are those of the partner that has it now.
  'domains.DomainFailed.v1': ({ domain_id, hostname, error }) =>
    error === 'claimed_elsewhere'
      ? null
      : byService('domain.failed', ['domain', domain_id], `${hostname}: ${error}`),
  'domains.DomainReleased.v1': ({ domain_id, hostname }) =>
    byService('domain.removed', ['domain', domain_id], hostname),
  'domains.NameSnapshotted.v1': null,
  'domains.PlaceTaken.v1': null,
  'domains.PlaceFreed.v1': null,
  'domains.PlacesClosed.v1': null,
  'domains.PlacesSnapshotted.v1': null,

  'webhooks.EndpointCreated.v1': ({ webhook_id, name, events }) =>
    byService('webhook.created', ['webhook', webhook_id], `“${name}”, ${events.join(', ')}`),
  'webhooks.EndpointUpdated.v1': ({ webhook_id, name, events, enabled }) =>
    byService(
      'webhook.updated',
      ['webhook', webhook_id],
      `“${name}”, ${enabled ? 'enabled' : 'paused'}, ${events.join(', ')}`,
    ),
  'webhooks.SecretRotated.v1': ({ webhook_id }) =>
    byService('webhook.secret_rotated', ['webhook', webhook_id]),
  'webhooks.SecretsResealed.v1': null,
  'webhooks.EndpointDeleted.v1': ({ webhook_id }) => byService('webhook.deleted', ['webhook', webhook_id]),
  'webhooks.RecoveryRequested.v1': ({ webhook_id, deliveries }) =>
    byService(
      'webhook.recovered',
      ['webhook', webhook_id],
      deliveries === 1 ? '1 delivery' : `${deliveries} deliveries`,
    ),
  'webhooks.RecoveryCompleted.v1': null,
  'webhooks.EndpointsSnapshotted.v1': null,

  // Of reveals the ledger's entries, which outlive them. Keys make too many to tell.
  'billing.RevealBilled.v1': ({ reveal_id, user_id, completed_at, units }) =>
    user_id === null
      ? null
      : {
          action: 'reveal.completed',
          subject: ['reveal', reveal_id],
          summary: units === 1 ? '1 unit' : '0 units',
          otherwise: ['user', user_id],
          at: completed_at,
        },
  'billing.AuditRequested.v1': ({ partner_id }) => byService('ledger.audited', ['partner', partner_id]),
};

function byOperator(action: string, subject: Activity['subject'], summary = ''): Activity {
  return { action, subject, summary, otherwise: 'operator' };
}

function byService(action: string, subject: Activity['subject'], summary = ''): Activity {
  return { action, subject, summary, otherwise: 'service' };
}

const figure = (value: number): string => value.toLocaleString('en');

const limitsOf = (limits: KeyLimits): string =>
  [
    `${figure(limits.requests_per_second)} requests a second`,
    limits.new_enrichments_per_day === null
      ? 'any number of new enrichments a day'
      : `${figure(limits.new_enrichments_per_day)} new enrichments a day`,
    `${figure(limits.pending_enrichments)} pending`,
    ...(limits.company_signals ? ['company signals'] : []),
    ...(limits.expires_at === null ? [] : [`expires ${limits.expires_at.slice(0, 10)}`]),
  ].join(', ');

const ceilingsOf = ({ keys, domains, ...limits }: Ceilings): string =>
  `${limitsOf({ ...limits, expires_at: null })}, ${figure(keys)} keys, ${figure(domains)} domains`;

const websites = (origins: readonly string[]): string =>
  origins.length === 1 ? '1 website' : `${origins.length} websites`;

const activitySchemas: EventSchemas = Object.fromEntries(
  Object.entries(schemas).filter(([type]) => DESCRIPTIONS[type as ActivityEvent['type']] !== null),
);

/** Projects who did what. A rebuild keeps what streams of endpoints no longer hold: they are truncated after 90 days. */
export const activity: Projection = {
  name: 'activity',
  tables: ['activity'],
  types: Object.keys(activitySchemas),
  carryOver: `insert into activity select * from read.activity where subject_kind = 'webhook'
              on conflict (position) do nothing`,
  async apply(events, db) {
    const rows = events.flatMap((stored) => rowOf(stored) ?? []);
    if (rows.length > 0) await insert(db, rows);
  },
};

function rowOf(stored: RecordedEvent) {
  const event = readEvent(activitySchemas, stored) as ActivityEvent | null;
  if (event === null) return null;
  const described = (DESCRIPTIONS[event.type] as Describe<ActivityEvent> | null)?.(event.data);
  const { metadata } = stored;
  const partner_id = 'partner_id' in event.data ? event.data.partner_id : metadata.partner_id;
  if (described == null || partner_id === undefined) return null;
  const [actor_kind, actor_id] = actorOf(stored, described);
  const [subject_kind, subject_id] = described.subject;
  return {
    position: String(stored.position),
    partner_id,
    at: described.at ?? metadata.at,
    actor_kind,
    actor_id,
    action: described.action,
    subject_kind,
    subject_id,
    summary: described.summary ?? '',
  };
}

function actorOf({ metadata: { key_id, user_id } }: RecordedEvent, { otherwise }: Activity): Actor {
  if (key_id !== undefined) return ['key', key_id];
  if (user_id !== undefined) return ['user', user_id];
  return typeof otherwise === 'string' ? [otherwise, ''] : otherwise;
}

/** By name: a later release may have added columns. */
const COLUMNS = 'position, partner_id, at, actor_kind, actor_id, action, subject_kind, subject_id, summary';

async function insert(db: pg.ClientBase, rows: readonly object[]): Promise<void> {
  await db.query({
    name: 'insert_activity',
    text: `insert into activity (${COLUMNS}) select ${COLUMNS} from json_populate_recordset(null::activity, $1)
           on conflict (position) do nothing`,
    values: [toJson(rows)],
  });
}

/** Time for which activity is kept, as usage is. */
const KEPT_MS = 400 * DAY;

/** Deletes activity past its retention. `now` in milliseconds. */
export const forgetActivity = (db: pg.Pool, now: number): Promise<void> =>
  forgetBefore(db, ['activity', 'at'], utcDay(now - KEPT_MS));
