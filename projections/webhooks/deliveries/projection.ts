/** The projection `deliveries`: loads the rows that a batch of events changes, folds the events into them, and writes them. */
import type pg from 'pg';
import { readEvent } from '../../../domain/kernel/events.ts';
import {
  type DeliveryEvent,
  deliveryEvents,
  type EndpointChangeEvent,
  endpointEvents,
  type SnapshottedEndpoint,
  WEBHOOK_HISTORY_MS,
  WEBHOOKS_PREFIX,
} from '../../../domain/webhooks/events.ts';
import { notify } from '../../../platform/postgres/notifications.ts';
import type { Projection } from '../../projection.ts';
import { type Columns, columnsOf, forgetBefore, rowSql, toJson } from '../../tables.ts';
import {
  ATTEMPT_HOUR_COLUMNS,
  DELIVERY_COLUMNS,
  type Fold,
  foldDelivery,
  type LoadedDelivery,
  TOTAL_COLUMNS,
  UNREAD_FIELDS,
} from './delivery.ts';
import {
  foldEndpoint,
  foldSnapshot,
  foldSuspension,
  HEALTH_COLUMNS,
  type HealthRow,
  type SuspensionEvent,
  suspensionEvents,
} from './health.ts';
import { RECOVERY_COLUMNS, type RecoveryRow } from './recovery.ts';

/** Notified when deliveries may be due, with a JSON array of `Due`, or '' if that would be too long. */
export const DELIVERIES_CHANNEL = 'doorplate_deliveries';
/** In bytes; PostgreSQL limits a notification to less than 8,000. */
const MAX_NOTIFICATION_BYTES = 7_900;

type HandledEvent =
  | { readonly delivery: DeliveryEvent; readonly position: bigint }
  | { readonly endpoint: EndpointChangeEvent; readonly position: bigint }
  | { readonly suspension: SuspensionEvent; readonly position: bigint }
  | (Snapshot & { readonly position: bigint });

interface Snapshot {
  readonly partner_id: string;
  readonly endpoints: readonly SnapshottedEndpoint[];
  /** An endpoint that was deleted before this instant, and is not in the snapshot, is forgotten. */
  readonly forgottenBefore: Date;
}

/**
 * Projects deliveries, their number by state, and the health of endpoints. Pausing, enabling or deleting an endpoint writes
 * its one row of health and no delivery; suspending or resuming a partner writes those of its endpoints.
 *
 * The indexes of a delivery, each with the query that walks it:
 * - `delivery_id`: outcomes, the page of one delivery, erasures;
 * - `webhook_id, next_attempt_at` of pending ones: claims and polls (`claims.sql`, `due-endpoints.ts`);
 * - `recorded` (`work.scheduled_at`): claims of what a fast clock had scheduled too late (the same files);
 * - `webhook_id, state, position`: pages of the history (`pageQuery`), an endpoint's newest pending one (`claims.sql`), `FORGET`;
 * - `payload_expires_at, delivery_id`: the sweep of expired ones (`expire-deliveries.ts`);
 * - `to_expire`: what of an endpoint has expired and is not swept yet (`isUnswept`);
 * - `listed`: searches of the dashboard (`searchQuery`) and recoveries (`recovery-readers.ts`);
 * - `changed`: increments of exports (`cli/analytics/changes.ts`).
 */
export const deliveries: Projection = {
  name: 'deliveries',
  tables: [
    'webhook_delivery',
    'webhook_total',
    'webhook_health',
    'webhook_attempt_hour',
    'webhook_recovery',
    'webhook_suspension',
  ],
  types: Object.keys({ ...deliveryEvents, ...endpointEvents, ...suspensionEvents }),
  async apply(events, db) {
    const handled = events.flatMap((stored): HandledEvent[] => {
      const { position } = stored;
      const delivery = readEvent(deliveryEvents, stored);
      if (delivery) return [{ delivery, position }];
      const suspension = readEvent(suspensionEvents, stored);
      if (suspension) return [{ suspension, position }];
      const endpoint = readEvent(endpointEvents, stored);
      if (endpoint?.type !== 'webhooks.EndpointsSnapshotted.v1')
        return endpoint ? [{ endpoint, position }] : [];
      const partner_id = stored.stream.slice(WEBHOOKS_PREFIX.length);
      const forgottenBefore = new Date(Date.parse(stored.metadata.at) - WEBHOOK_HISTORY_MS);
      return [{ partner_id, endpoints: endpoint.data.endpoints, forgottenBefore, position }];
    });
    if (handled.length === 0) return;
    const fold = await load(handled, db);
    for (const one of handled) {
      if ('delivery' in one) foldDelivery(fold, one.delivery, one.position);
      else if ('suspension' in one) foldSuspension(fold, one.suspension, one.position);
      else if ('endpoint' in one) foldEndpoint(fold, one.endpoint, one.position);
      else for (const endpoint of one.endpoints) foldSnapshot(fold, one.partner_id, endpoint, one.position);
    }
    await Promise.all([write(fold, db), notifyDue(fold, db)]);
    for (const one of handled) if ('endpoints' in one) await forgetEndpoints(one, db);
  },
};

async function forgetEndpoints(
  { partner_id, endpoints, forgottenBefore }: Snapshot,
  db: pg.ClientBase,
): Promise<void> {
  await db.query(
    'delete from webhook_health where partner_id = $1 and webhook_id <> all ($2) and deleted_at <= $3',
    [partner_id, endpoints.map(({ webhook_id }) => webhook_id), forgottenBefore],
  );
}

const added = rowSql(DELIVERY_COLUMNS);
const loaded = rowSql(DELIVERY_COLUMNS, UNREAD_FIELDS);
const changing = rowSql(DELIVERY_COLUMNS, [
  ...UNREAD_FIELDS,
  'delivery_id',
  'webhook_id',
  'partner_id',
  'created_at',
  'newest_secret_only',
]);
const total = rowSql(TOTAL_COLUMNS);
const attemptHour = rowSql(ATTEMPT_HOUR_COLUMNS);
const health = rowSql(HEALTH_COLUMNS);
const recovery = rowSql(RECOVERY_COLUMNS);

interface Suspension {
  readonly partner_id: string;
  readonly suspended_at: string;
}
const SUSPENSION_COLUMNS: Columns<Suspension> = { partner_id: 'uuid', suspended_at: 'timestamptz' };

const DELIVERIES = `select ${loaded.select} from webhook_delivery where delivery_id = any ($1)`;
const HEALTH = `select ${health.select} from webhook_health`;
const RECOVERIES = `select ${recovery.select} from webhook_recovery where recovery_id = any ($1)`;
const OPEN_RECOVERIES = `select ${recovery.select} from webhook_recovery where completed_at is null and webhook_id = any ($1)`;
const SUSPENSIONS = `select ${rowSql(SUSPENSION_COLUMNS).select} from webhook_suspension where partner_id = any ($1)`;

/** Returns the ids of the rows that a batch may change. `suspensions`: partners that it suspends, resumes or deletes. */
function idsIn(handled: readonly HandledEvent[]) {
  const deliveries = new Set<string>();
  const webhooks = new Set<string>();
  const partners = new Set<string>();
  const suspensions = new Set<string>();
  const recoveries = new Set<string>();
  for (const one of handled) {
    if ('suspension' in one) {
      suspensions.add(one.suspension.data.partner_id);
      continue;
    }
    if ('endpoints' in one) {
      partners.add(one.partner_id);
      for (const { webhook_id, recovery } of one.endpoints) {
        webhooks.add(webhook_id);
        if (recovery !== null) recoveries.add(recovery.recovery_id);
      }
      continue;
    }
    const { data } = 'delivery' in one ? one.delivery : one.endpoint;
    webhooks.add(data.webhook_id);
    partners.add(data.partner_id);
    if ('recovery_id' in data) recoveries.add(data.recovery_id);
    if ('delivery_id' in data) deliveries.add(data.delivery_id);
    if ('retried_at' in data && 'deliveries' in data) for (const [id] of data.deliveries) deliveries.add(id);
    if ('delivery_ids' in data) for (const id of data.delivery_ids) deliveries.add(id);
  }
  return { deliveries, webhooks, partners, suspensions, recoveries };
}

async function readRows<Row extends pg.QueryResultRow>(
  db: pg.ClientBase,
  name: string,
  text: string,
  ids: ReadonlySet<string>,
): Promise<Row[]> {
  return ids.size === 0 ? [] : (await db.query<Row>({ name, text, values: [[...ids]] })).rows;
}

async function load(handled: readonly HandledEvent[], db: pg.ClientBase): Promise<Fold> {
  const { deliveries, webhooks, partners, suspensions, recoveries } = idsIn(handled);
  // Pipelined, because none of the queries needs another's rows.
  const [known, knownHealth, open] = await Promise.all([
    readRows<LoadedDelivery>(db, 'known_deliveries', DELIVERIES, deliveries),
    readRows<HealthRow>(db, 'known_health', `${HEALTH} where webhook_id = any ($1)`, webhooks),
    readRows<RecoveryRow>(db, 'open_recoveries_of', OPEN_RECOVERIES, webhooks),
  ]);
  for (const { recovery_id } of known) if (recovery_id !== null) recoveries.add(recovery_id);
  const knownRecoveries = await readRows<RecoveryRow>(db, 'known_recoveries', RECOVERIES, recoveries);
  // A new endpoint takes over the suspension of its partner.
  const hasNew = knownHealth.length < webhooks.size;
  const asked = hasNew ? new Set([...suspensions, ...partners]) : suspensions;
  const suspended = await readRows<Suspension>(db, 'known_suspensions', SUSPENSIONS, asked);
  if (suspensions.size > 0) {
    const text = `${HEALTH} where partner_id = any ($1) and deleted_at is null and webhook_id <> all ($2)`;
    knownHealth.push(...(await db.query<HealthRow>(text, [[...suspensions], [...webhooks]])).rows);
  }
  return {
    position: '',
    deliveries: new Map(known.map((row) => [row.delivery_id, row])),
    health: new Map(knownHealth.map((row) => [row.webhook_id, row])),
    added: new Map(),
    changed: new Set(),
    changedHealth: new Set(),
    totals: new Map(),
    attempts: new Map(),
    due: new Map(),
    recoveries: new Map([...open, ...knownRecoveries].map((row) => [row.recovery_id, row])),
    changedRecoveries: new Set(),
    suspended: new Map(suspended.map(({ partner_id, suspended_at }) => [partner_id, suspended_at])),
    changedPartners: new Set(),
  };
}

async function write(fold: Fold, db: pg.ClientBase): Promise<void> {
  const { changed, changedHealth } = fold;
  const totals = [...fold.totals.values()].filter((total) => total.deliveries !== 0);
  await writeSuspensions(fold, db);
  if (fold.added.size + changed.size + changedHealth.size + fold.changedRecoveries.size === 0) return;
  const rows = [
    fold.added.values(),
    changed,
    totals,
    changedHealth,
    fold.attempts.values(),
    fold.changedRecoveries,
  ];
  const values = rows.map(toJson);
  await db.query({ name: 'apply_deliveries', text: APPLY, values });
}

async function writeSuspensions({ changedPartners, suspended }: Fold, db: pg.ClientBase): Promise<void> {
  for (const partnerId of changedPartners) {
    const at = suspended.get(partnerId);
    await (at === undefined
      ? db.query('delete from webhook_suspension where partner_id = $1', [partnerId])
      : db.query(
          'insert into webhook_suspension (partner_id, suspended_at) values ($1, $2) on conflict do nothing',
          [partnerId, at],
        ));
  }
}

/** Notifies which endpoints have due deliveries; with no names if they do not fit into a notification. */
async function notifyDue({ due }: Fold, db: pg.ClientBase): Promise<void> {
  if (due.size === 0) return;
  const named = JSON.stringify([...due.values()]);
  const isTooLong = Buffer.byteLength(named) > MAX_NOTIFICATION_BYTES;
  await notify(db, DELIVERIES_CHANNEL, isTooLong ? '' : named);
}

/** Writes a batch in one statement; no row is written by two of its parts. */
const APPLY = `
  with added as (
    insert into webhook_delivery (${added.columns}) select ${added.values} from ${added.recordset('$1')}),
  changed as (
    update webhook_delivery d set (${changing.columns}) = row (${changing.values})
    from ${loaded.recordset('$2')} where d.delivery_id = r.delivery_id),
  totals as (
    insert into webhook_total as t (${total.columns}) select ${total.values} from ${total.recordset('$3')}
    on conflict (webhook_id, day, state) do update set deliveries = t.deliveries + excluded.deliveries),
  health as (
    insert into webhook_health (${health.columns}) select ${health.values} from ${health.recordset('$4')}
    on conflict (webhook_id) do update set (${health.columns}) = row (${columnsOf('excluded', health.columns)})),
  attempts as (
    insert into webhook_attempt_hour as a (${attemptHour.columns})
    select ${attemptHour.values} from ${attemptHour.recordset('$5')}
    on conflict (webhook_id, day, hour, outcome, http_status) do update
    set attempts = a.attempts + excluded.attempts, duration_ms = a.duration_ms + excluded.duration_ms,
        changed_position = excluded.changed_position),
  recoveries as (
    insert into webhook_recovery (${recovery.columns}) select ${recovery.values} from ${recovery.recordset('$6')}
    on conflict (recovery_id) do update set (${recovery.columns}) = row (${columnsOf('excluded', recovery.columns)}))
  select`;

const FORGOTTEN_AT_ONCE = 2_000;

/** Deletes deliveries created before `day` (`YYYY-MM-DD`, UTC), whose streams the event store has deleted. */
export async function forgetDeliveriesBefore(db: pg.Pool, day: string): Promise<void> {
  await forgetBefore(db, ['webhook_recovery', 'created_at'], day);
  for (;;) {
    const { rows } = await db.query<{ webhook_id: string }>(OLDEST, [day, FORGOTTEN_AT_ONCE]);
    if (rows.length === 0) return;
    for (const { webhook_id } of rows) await forgetOfEndpoint(db, webhook_id, day);
  }
}

const OLDEST = `
  select distinct webhook_id from (
    select webhook_id from read.webhook_total where day < $1::date order by day, webhook_id limit $2) oldest`;

/** The totals go last, because they name the endpoint for a repeated run. */
async function forgetOfEndpoint(db: pg.Pool, webhookId: string, day: string): Promise<void> {
  // All states, because the payloads of all of these deliveries have expired.
  for (const state of ['expired', 'pending', 'delivered', 'failed']) {
    for (let deleted = FORGOTTEN_AT_ONCE; deleted === FORGOTTEN_AT_ONCE; ) {
      const { rowCount } = await db.query(FORGET, [webhookId, day, FORGOTTEN_AT_ONCE, state]);
      deleted = rowCount ?? 0;
    }
  }
  for (const table of ['webhook_attempt_hour', 'webhook_total']) {
    await db.query(`delete from read.${table} where webhook_id = $1 and day < $2::date`, [webhookId, day]);
  }
}

const FORGET = `
  delete from read.webhook_delivery where delivery_id = any (array(
    select delivery_id from (
      select delivery_id, created_at from read.webhook_delivery
      where webhook_id = $1 and state = $4 order by position limit $3) oldest
    where created_at < $2::date::timestamp at time zone 'UTC'))`;
