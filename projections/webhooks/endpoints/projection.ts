/** The projection of endpoints, which is stored as `webhooks`: their rows and subscriptions, and how events change them. */
import type pg from 'pg';
import { unreachable } from '../../../domain/kernel/decider.ts';
import { type EventOf, readEvent } from '../../../domain/kernel/events.ts';
import {
  type EndpointEvent,
  endpointEvents,
  type SealedSecret,
  type SnapshottedEndpoint,
  type Subscribable,
  WEBHOOK_HISTORY_MS,
  WEBHOOKS_PREFIX,
} from '../../../domain/webhooks/events.ts';
import type { RecordedEvent } from '../../../event-store/port.ts';
import type { Projection } from '../../projection.ts';
import { type Columns, forgetBefore, rowSql, toJson } from '../../tables.ts';

/** A row of `webhook_endpoint`; instants in ISO 8601. */
export interface EndpointRow
  extends Omit<SnapshottedEndpoint, 'events' | 'secret' | 'previous' | 'recovery'> {
  readonly partner_id: string;
  readonly events: readonly Subscribable[];
  /** null: the endpoint is deleted. */
  readonly secret: SealedSecret | null;
  /** Also signs until `secret_rotation_until`. */
  readonly previous_secret: SealedSecret | null;
  readonly last_revision: number;
  readonly last_position: string;
}

export const ENDPOINT_COLUMNS: Columns<EndpointRow> = {
  webhook_id: 'uuid',
  partner_id: 'uuid',
  name: 'text',
  url: 'text',
  events: 'text[]',
  tracker_id: 'uuid',
  enabled: 'boolean',
  created_at: 'timestamptz',
  updated_at: 'timestamptz',
  deleted_at: 'timestamptz',
  secret: 'json',
  previous_secret: 'json',
  secret_rotation_until: 'timestamptz',
  last_revision: 'integer',
  last_position: 'position',
};

/** Projects endpoints and the periods of their subscriptions. Row by row, because these events are rare. */
export const endpoints: Projection = {
  name: 'webhooks',
  tables: ['webhook_endpoint', 'webhook_subscription'],
  types: Object.keys(endpointEvents),
  async apply(events, db) {
    for (const stored of events) {
      const event = readEvent(endpointEvents, stored);
      if (event) await applyOne(event, stored, db);
    }
  },
};

type Origin = Pick<RecordedEvent, 'stream' | 'revision' | 'position' | 'metadata'>;
type Data<Name extends EndpointEvent['type']> = EventOf<Pick<typeof endpointEvents, Name>>['data'];

async function applyOne({ type, data }: EndpointEvent, origin: Origin, db: pg.ClientBase): Promise<void> {
  switch (type) {
    case 'webhooks.EndpointCreated.v1': {
      const fresh = { ...data, enabled: true, updated_at: data.created_at };
      return insert(db, fresh, origin);
    }
    case 'webhooks.EndpointUpdated.v1':
      return updated(data, origin, db);
    case 'webhooks.SecretRotated.v1':
      await set(db, origin, data.webhook_id, ROTATED, [data.secret, data.rotation_until, data.rotated_at]);
      return;
    case 'webhooks.SecretsResealed.v1':
      await set(db, origin, data.webhook_id, RESEALED, [data.secret, data.previous]);
      return;
    case 'webhooks.EndpointDeleted.v1':
      return deleted(data, origin, db);
    case 'webhooks.EndpointsSnapshotted.v1':
      return snapshotted(data, origin, db);
    case 'webhooks.RecoveryRequested.v1':
    case 'webhooks.RecoveryCompleted.v1':
      return;
    default:
      unreachable(type);
  }
}

const UPDATED = 'name = $4, events = $5, enabled = $6, updated_at = $7';
const ROTATED = 'previous_secret = secret, secret = $4, secret_rotation_until = $5, updated_at = $6';
const RESEALED = 'secret = $4, previous_secret = $5';
const DELETED =
  'enabled = false, deleted_at = $4, secret = null, previous_secret = null, secret_rotation_until = null';

/** Updates the endpoint's row (parameters from $4), unless it already has this event. @returns whether it was updated */
async function set(
  db: pg.ClientBase,
  { revision, position }: Origin,
  webhook_id: string,
  assignments: string,
  values: readonly unknown[],
): Promise<boolean> {
  const { rowCount } = await db.query(
    `update webhook_endpoint set ${assignments}, last_revision = $2, last_position = $3
     where webhook_id = $1 and last_revision < $2`,
    [webhook_id, revision, String(position), ...values],
  );
  return rowCount === 1;
}

const row = rowSql(ENDPOINT_COLUMNS);

/** Adds an endpoint, with its subscription, unless it is there. */
async function insert(
  db: pg.ClientBase,
  endpoint: Pick<EndpointRow, 'webhook_id' | 'enabled'>,
  { revision, position }: Origin,
): Promise<void> {
  const { rowCount } = await db.query(
    `insert into webhook_endpoint (${row.columns}) select ${row.values} from ${row.recordset('$1')}
     on conflict (webhook_id) do nothing`,
    [toJson([{ ...endpoint, last_revision: revision, last_position: String(position) }])],
  );
  if (rowCount === 1 && endpoint.enabled) await subscribe(db, endpoint.webhook_id, position);
}

async function updated(
  { webhook_id, name, events, enabled, updated_at }: Data<'webhooks.EndpointUpdated.v1'>,
  origin: Origin,
  db: pg.ClientBase,
): Promise<void> {
  const isNew = await set(db, origin, webhook_id, UPDATED, [name, events, enabled, updated_at]);
  if (!isNew) return;
  await unsubscribe(db, webhook_id, origin.position, enabled ? events : null);
  if (enabled) await subscribe(db, webhook_id, origin.position);
}

async function deleted(
  { webhook_id, deleted_at }: Data<'webhooks.EndpointDeleted.v1'>,
  origin: Origin,
  db: pg.ClientBase,
): Promise<void> {
  const isNew = await set(db, origin, webhook_id, DELETED, [deleted_at]);
  if (isNew) await unsubscribe(db, webhook_id, origin.position, null);
}

/** Restores endpoints whose earlier events may have been truncated. */
async function snapshotted(
  { endpoints }: Data<'webhooks.EndpointsSnapshotted.v1'>,
  origin: Origin,
  db: pg.ClientBase,
): Promise<void> {
  const partner_id = origin.stream.slice(WEBHOOKS_PREFIX.length);
  for (const { previous: previous_secret, ...endpoint } of endpoints) {
    const withoutSecrets = { secret: null, previous_secret: null, secret_rotation_until: null };
    const isDeleted = endpoint.deleted_at !== null;
    const restored = { ...endpoint, partner_id, previous_secret, ...(isDeleted ? withoutSecrets : {}) };
    await insert(db, restored, origin);
  }
  const forgottenBefore = new Date(Date.parse(origin.metadata.at) - WEBHOOK_HISTORY_MS);
  await db.query(
    `with gone as (
       delete from webhook_endpoint where partner_id = $1 and webhook_id <> all ($2) and deleted_at <= $3
       returning webhook_id)
     delete from webhook_subscription s using gone where s.webhook_id = gone.webhook_id`,
    [partner_id, endpoints.map(({ webhook_id }) => webhook_id), forgottenBefore],
  );
}

/** Opens a subscription with the endpoint's current events, unless one is open. */
const subscribe = (db: pg.ClientBase, webhookId: string, position: bigint) =>
  db.query(
    `insert into webhook_subscription (webhook_id, partner_id, tracker_id, events, from_position)
     select webhook_id, partner_id, tracker_id, events, $2 from webhook_endpoint e
     where webhook_id = $1
       and not exists (select from webhook_subscription s where s.webhook_id = e.webhook_id and to_position is null)`,
    [webhookId, String(position)],
  );

/** Closes the open subscription, unless it has the events `unless`. */
const unsubscribe = (
  db: pg.ClientBase,
  webhookId: string,
  position: bigint,
  unless: readonly string[] | null,
) =>
  db.query(
    `update webhook_subscription set to_position = $2
     where webhook_id = $1 and to_position is null and events is distinct from $3::text[]`,
    [webhookId, String(position), unless],
  );

/** Deletes subscriptions that ended before a position of the log, which all consumers have passed: none asks about them. */
export const forgetSubscriptionsBefore = (db: pg.Pool, position: bigint): Promise<void> =>
  forgetBefore(db, ['webhook_subscription', 'to_position'], String(position), 'bigint');
