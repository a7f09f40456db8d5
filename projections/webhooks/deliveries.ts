/** The deliveries' table. One file, because the columns, the fold of the events and the SQL change together. */
import type pg from 'pg';
import { readEvent } from '../../domain/kernel/events.ts';
import {
  type DeliveryEvent,
  deliveryEvents,
  type EndpointChangeEvent,
  endpointEvents,
  type SnapshottedEndpoint,
  WEBHOOK_HISTORY_MS,
  WEBHOOKS_PREFIX,
} from '../../domain/webhooks/events.ts';
import { notify } from '../../platform/postgres/notifications.ts';
import type { Projection } from '../projection.ts';
import { columnsOf, forgetBefore, toJson } from '../tables.ts';
import {
  type DeliveryRow,
  type Fold,
  foldDelivery,
  foldEndpoint,
  foldSnapshot,
  foldSuspension,
  type HealthRow,
  type RecoveryRow,
  type SuspensionEvent,
  suspensionEvents,
} from './delivery-fold.ts';

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

const ISO = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;
const iso = (...columns: string[]): string =>
  columns.map((column) => `to_char(${column} at time zone 'UTC', ${ISO}) as ${column}`).join(', ');

const DELIVERIES = `
  select delivery_id, webhook_id, partner_id, state, cycle, attempts, cycle_attempts,
         stood_still_ms::float8 as stood_still_ms, last_duration_ms, http_status, error, earlier_attempts, recovery_id,
         changed_position::text as changed_position, ${iso('created_at', 'cycle_started_at', 'last_attempt_at', 'delivered_at', 'next_attempt_at')}
  from webhook_delivery where delivery_id = any ($1)`;
const HEALTH = `
  select webhook_id, partner_id, pending::float8 as pending, failures_in_row, still_ms::float8 as still_ms,
         last_error, last_http_status, fanned_out_to::text as fanned_out_to, last_position::text as last_position,
         changed_position::text as changed_position,
         ${iso('last_attempt_at', 'paused_at', 'partner_suspended_at', 'deleted_at', 'still_since')}
  from webhook_health`;

const RECOVERIES = `
  select recovery_id, webhook_id, partner_id, held_back, deliveries::float8 as deliveries, position::text as position,
         pending::float8 as pending, delivered::float8 as delivered, failed::float8 as failed,
         cancelled::float8 as cancelled, expired::float8 as expired, ${iso('since', 'created_at', 'completed_at')}
  from webhook_recovery where recovery_id = any ($1)`;

interface Suspension {
  readonly partner_id: string;
  readonly suspended_at: string;
}

const loadSuspensions = async (partners: readonly string[], db: pg.ClientBase): Promise<Suspension[]> =>
  (
    await db.query<Suspension>(
      `select partner_id, ${iso('suspended_at')} from webhook_suspension where partner_id = any ($1)`,
      [partners],
    )
  ).rows;

async function load(handled: readonly HandledEvent[], db: pg.ClientBase): Promise<Fold> {
  const ids = new Set<string>();
  const webhooks = new Set<string>();
  const partnerIds = new Set<string>();
  const changingPartners = new Set<string>();
  const recoveryIds = new Set<string>();
  for (const one of handled) {
    if ('suspension' in one) {
      changingPartners.add(one.suspension.data.partner_id);
      continue;
    }
    if ('endpoints' in one) {
      partnerIds.add(one.partner_id);
      for (const { webhook_id, recovery } of one.endpoints) {
        webhooks.add(webhook_id);
        if (recovery !== null) recoveryIds.add(recovery.recovery_id);
      }
      continue;
    }
    const { data } = 'delivery' in one ? one.delivery : one.endpoint;
    webhooks.add(data.webhook_id);
    partnerIds.add(data.partner_id);
    if ('recovery_id' in data) recoveryIds.add(data.recovery_id);
    if ('delivery_id' in data) ids.add(data.delivery_id);
    if ('retried_at' in data && 'deliveries' in data) for (const [id] of data.deliveries) ids.add(id);
    if ('delivery_ids' in data) for (const id of data.delivery_ids) ids.add(id);
  }
  // Pipelined: each waits for no other's rows.
  const [known, health] = await Promise.all([
    ids.size === 0
      ? []
      : db
          .query<DeliveryRow>({ name: 'known_deliveries', text: DELIVERIES, values: [[...ids]] })
          .then(({ rows }) => rows),
    db
      .query<HealthRow>({
        name: 'known_health',
        text: `${HEALTH} where webhook_id = any ($1)`,
        values: [[...webhooks]],
      })
      .then(({ rows }) => rows),
  ]);
  for (const { recovery_id } of known) if (recovery_id !== null) recoveryIds.add(recovery_id);
  const recoveries =
    recoveryIds.size === 0
      ? []
      : (
          await db.query<RecoveryRow>({
            name: 'known_recoveries',
            text: RECOVERIES,
            values: [[...recoveryIds]],
          })
        ).rows;
  // A new endpoint has the suspension of its partner.
  const partners = [...changingPartners, ...(health.length < webhooks.size ? partnerIds : [])];
  const suspended = partners.length === 0 ? [] : await loadSuspensions(partners, db);
  if (changingPartners.size > 0) {
    const text = `${HEALTH} where partner_id = any ($1) and deleted_at is null and webhook_id <> all ($2)`;
    health.push(...(await db.query<HealthRow>(text, [[...changingPartners], [...webhooks]])).rows);
  }
  return {
    position: '',
    deliveries: new Map(known.map((row) => [row.delivery_id, row])),
    health: new Map(health.map((row) => [row.webhook_id, row])),
    added: new Map(),
    changed: new Set(),
    changedHealth: new Set(),
    totals: new Map(),
    attempts: new Map(),
    due: new Map(),
    recoveries: new Map(recoveries.map((row) => [row.recovery_id, row])),
    changedRecoveries: new Set(),
    suspended: new Map(suspended.map(({ partner_id, suspended_at }) => [partner_id, suspended_at])),
    changedPartners: new Set(),
  };
}

async function write(fold: Fold, db: pg.ClientBase): Promise<void> {
  const { added, changed, changedHealth } = fold;
  const totals = [...fold.totals.values()].filter((total) => total.deliveries !== 0);
  await writeSuspensions(fold, db);
  if (added.size + changed.size + changedHealth.size + fold.changedRecoveries.size === 0) return;
  const rows = [
    added.values(),
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

/** Names the endpoints with due deliveries, or none where they are too many for a notification. */
async function notifyDue({ due }: Fold, db: pg.ClientBase): Promise<void> {
  if (due.size === 0) return;
  const named = JSON.stringify([...due.values()]);
  const isTooLong = Buffer.byteLength(named) > MAX_NOTIFICATION_BYTES;
  await notify(db, DELIVERIES_CHANNEL, isTooLong ? '' : named);
}

const ADDED = `delivery_id, webhook_id, partner_id, event_id, type, state, cycle, attempts, cycle_attempts, cycle_started_at,
               stood_still_ms, created_at, position, payload_expires_at, last_attempt_at, last_duration_ms, delivered_at,
               next_attempt_at, http_status, error, earlier_attempts, recovery_id, changed_position`;
const CHANGED = `state, cycle, attempts, cycle_attempts, cycle_started_at, stood_still_ms, last_attempt_at,
                 last_duration_ms, delivered_at, next_attempt_at, http_status, error, earlier_attempts, recovery_id,
                 changed_position`;
const OF_HEALTH = `pending, failures_in_row, last_attempt_at, last_error, last_http_status, paused_at, partner_suspended_at, deleted_at, still_since, still_ms, fanned_out_to,
                   last_position, changed_position`;
const OF_RECOVERY = 'completed_at, pending, delivered, failed, cancelled, expired';
const RECOVERY = `recovery_id, webhook_id, partner_id, since, held_back, deliveries, created_at, position, ${OF_RECOVERY}`;
const OF_ATTEMPTS = 'webhook_id, partner_id, day, hour, outcome, http_status';

/** Writes a batch in one statement; no row is written by two of its parts. */
const APPLY = `
  with added as (
    insert into webhook_delivery (${ADDED})
    select ${ADDED} from json_populate_recordset(null::webhook_delivery, $1)),
  changed as (
    update webhook_delivery d set (${CHANGED}) = row (${columnsOf('n', CHANGED)})
    from json_populate_recordset(null::webhook_delivery, $2) n where d.delivery_id = n.delivery_id),
  totals as (
    insert into webhook_total as t (webhook_id, partner_id, day, state, deliveries)
    select webhook_id, partner_id, day, state, deliveries from json_populate_recordset(null::webhook_total, $3)
    on conflict (webhook_id, day, state) do update set deliveries = t.deliveries + excluded.deliveries),
  health as (
    insert into webhook_health (webhook_id, partner_id, ${OF_HEALTH})
    select webhook_id, partner_id, ${OF_HEALTH} from json_populate_recordset(null::webhook_health, $4)
    on conflict (webhook_id) do update set (${OF_HEALTH}) = row (${columnsOf('excluded', OF_HEALTH)})),
  attempts as (
    insert into webhook_attempt_hour as a (${OF_ATTEMPTS}, attempts, duration_ms, changed_position)
    select ${OF_ATTEMPTS}, attempts, duration_ms, changed_position from json_populate_recordset(null::webhook_attempt_hour, $5)
    on conflict (webhook_id, day, hour, outcome, http_status) do update
    set attempts = a.attempts + excluded.attempts, duration_ms = a.duration_ms + excluded.duration_ms,
        changed_position = excluded.changed_position),
  recoveries as (
    insert into webhook_recovery (${RECOVERY}) select ${RECOVERY} from json_populate_recordset(null::webhook_recovery, $6)
    on conflict (recovery_id) do update set (${OF_RECOVERY}) = row (${columnsOf('excluded', OF_RECOVERY)}))
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
