/**
 * The operator's webhook (docs/operations.md): what an operator should hear of, found in the tables by a job of the upkeep. Each
 * occurrence has an id of its own, made from what it is about, so that any number of runs and processes record it once.
 */
import type pg from 'pg';
import { v5 as uuidv5 } from 'uuid';
import { DAY, HOUR, isoTime, utcDay } from '../../domain/kernel/time.ts';
import { BREAKER_OPENS_AFTER } from '../../domain/webhooks/events.ts';
import { queryWithSynchronousCommit } from '../../platform/postgres/transactions.ts';
import type { ProcessorDeps } from '../deps.ts';
import { forEachIsolated } from '../for-each.ts';

/** An occurrence. `about` names it among those of its type. */
export interface Alert {
  readonly type: `operator.${string}`;
  readonly about: readonly (string | number)[];
  readonly data: Readonly<Record<string, unknown>>;
}

const ALERTS = '3a1f7f0a-3a53-4c6e-8a0e-5b9b0c7d1e42';

const idOf = ({ type, about }: Alert): string => `evt_operator_${uuidv5([type, ...about].join(' '), ALERTS)}`;

/** Records occurrences that are not known yet, due at once. `now`: milliseconds. */
export async function recordAlerts(pool: pg.Pool, alerts: readonly Alert[], now: number): Promise<void> {
  if (alerts.length === 0) return;
  const created_at = isoTime(now);
  const rows = alerts.map((alert) => {
    const id = idOf(alert);
    const { type, data } = alert;
    return { id, type, body: JSON.stringify({ id, type, schema_version: 1, created_at, data }) };
  });
  await queryWithSynchronousCommit(
    pool,
    `insert into work.operator_alert (alert_id, type, body, created_at, due_at)
     select id, type, body, $2, $2 from json_to_recordset($1) as a (id text, type text, body text)
     on conflict (alert_id) do nothing`,
    [JSON.stringify(rows), new Date(now)],
  );
}

export interface WatchDeps extends Pick<ProcessorDeps, 'pool' | 'clock'> {
  readonly limits: {
    readonly outstanding: number;
    readonly deliveries: number;
    readonly payloadBytes: number;
  };
}

type Watch = (deps: WatchDeps, now: number) => Promise<Alert[]>;

const NEAR = 0.8;

/** What is so now. `about` names it among those of its type; `data` of its alerts. */
interface Condition {
  readonly about: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** It keeps an occurrence alive, and makes no alert. Default: false. */
  readonly quiet?: boolean;
}

/**
 * Those that are not quiet, with when each began: at the first run that saw it since a run that did not. One that ends and comes again
 * begins anew, and so is another occurrence. Runs of several processes agree, since the table keeps the beginnings.
 */
async function beginnings(
  pool: pg.Pool,
  type: Alert['type'],
  found: readonly Condition[],
  now: number,
): Promise<(Condition & { readonly began: string })[]> {
  const { rows } = await pool.query<{ about: string; began_at: Date }>(
    `with standing as (
       insert into work.operator_condition (type, about, began_at)
       select $1, about, $3 from json_array_elements_text($2) as about
       on conflict (type, about) do update set about = excluded.about
       returning about, began_at),
     ended as (
       delete from work.operator_condition
       where type = $1 and about not in (select json_array_elements_text($2)))
     select about, began_at from standing`,
    [type, JSON.stringify(found.map(({ about }) => about)), new Date(now)],
  );
  const began = new Map(rows.map(({ about, began_at }) => [about, isoTime(began_at.getTime())]));
  return found
    .filter(({ quiet = false }) => !quiet)
    .map((condition) => ({ ...condition, began: began.get(condition.about) ?? isoTime(now) }));
}

/** A partner sees them in the dashboard as soon as the breaker opens; the operator once it has been open for long. */
const heldEndpoints: Watch = async ({ pool }, now) => {
  const { rows } = await pool.query(
    `select h.webhook_id, h.partner_id, e.name, h.pending::float8 as pending, h.partner_suspended_at is not null as suspended
     from read.webhook_health h join read.webhook_endpoint e on e.webhook_id = h.webhook_id
     where h.failures_in_row >= $1 and h.paused_at is null and h.deleted_at is null`,
    [BREAKER_OPENS_AFTER],
  );
  const type = 'operator.endpoint_held';
  const found = rows.map(({ suspended, ...data }) => ({ about: data.webhook_id, data, quiet: suspended }));
  return (await beginnings(pool, type, found, now)).flatMap(({ about, data, began }) =>
    [1, 24]
      .filter((hours) => Date.parse(began) <= now - hours * HOUR)
      .map((hours) => ({
        type,
        about: [about, began, hours],
        data: { ...data, held_since: began, hours },
      })),
  );
};

/** Endpoints that the operator has heard of, and whose breaker has closed since. */
const recoveredEndpoints: Watch = async ({ pool }) => {
  const { rows } = await pool.query(
    `select distinct a.data ->> 'webhook_id' as webhook_id, a.data ->> 'partner_id' as partner_id, a.data ->> 'name' as name,
            a.data ->> 'held_since' as held_since
     from (select body::json -> 'data' as data from work.operator_alert where type = 'operator.endpoint_held') a
     where not exists (
       select from work.operator_condition c
       where c.type = 'operator.endpoint_held' and c.about = a.data ->> 'webhook_id'
         and c.began_at = (a.data ->> 'held_since')::timestamptz)`,
  );
  return rows.map((row) => ({
    type: 'operator.endpoint_recovered',
    about: [row.webhook_id, row.held_since],
    data: row,
  }));
};

const stoppedConsumers: Watch = async ({ pool }, now) => {
  const { rows } = await pool.query(
    `select 'projection' as kind, name, left(stopped_by, 500) as stopped_by from read.projection where stopped_by is not null
     union all
     select 'processor', name, left(stopped_by, 500) from work.processor where stopped_by is not null`,
  );
  const type = 'operator.consumer_stopped';
  const found = rows.map((data) => ({ about: `${data.kind} ${data.name}`, data }));
  return (await beginnings(pool, type, found, now)).map(({ about, data, began }) => ({
    type,
    about: [about, began, data.stopped_by as string],
    data,
  }));
};

/** Of the audits that dashboard users have asked for. The command and the daily anchors record theirs themselves. */
const auditDifferences: Watch = async ({ pool }) => {
  const { rows } = await pool.query(
    `select partner_id, report from work.audit_verdict
     where json_array_length(report -> 'differences') > 0`,
  );
  return rows.map(({ partner_id, report }) => auditAlert(partner_id, report.differences));
};

/** The occurrence of differences that an audit found: the same ones are one. */
export const auditAlert = (
  partnerId: string,
  differences: readonly { readonly kind: string; readonly detail?: unknown }[],
): Alert => ({
  type: 'operator.audit_difference',
  about: [partnerId, uuidv5(JSON.stringify(differences), ALERTS)],
  data: {
    partner_id: partnerId,
    differences: differences.length,
    kinds: [...new Set(differences.map(({ kind }) => kind))],
  },
});

/** New enrichments of the UTC day, of keys that have an allowance. */
export const usedAllowances: Watch = async ({ pool }, now) => {
  const day = utcDay(now);
  const { rows } = await pool.query(
    `select k.partner_id, k.key_id, k.name, u.used, k.new_enrichments_per_day as limit
     from read.api_key k
     cross join lateral (
       select count(*)::int as used
       from (select key_id from read.reservation
             where partner_id = k.partner_id and state in ('reserved', 'submitted') and made_at >= $1
             union all
             select key_id from read.reservation
             where partner_id = k.partner_id and ended_at >= $1 and made_at >= $1) r
       where r.key_id = k.key_id) u
     where k.new_enrichments_per_day > 0 and k.revoked_at is null and u.used >= k.new_enrichments_per_day * ${NEAR}`,
    [new Date(`${day}T00:00:00Z`)],
  );
  return rows.map((row) => ({
    type: 'operator.allowance_near',
    about: [row.key_id, day],
    data: { ...row, day },
  }));
};

/** Queues at four fifths, once a UTC day each. */
const fullQueues: Watch = async ({ pool, limits }, now) => {
  const { rows } = await pool.query(
    `select 'webhook_deliveries' as queue, partner_id, used::float8 as used, $1::float8 as limit
     from (select partner_id, sum(pending) as used from read.webhook_health where deleted_at is null group by 1) d
     where used >= $1 * ${NEAR}
     union all
     select 'webhook_payload_bytes', partner_id, used::float8, $2::float8
     from (select partner_id, sum(bytes) as used from read.webhook_retained group by 1) b where used >= $2 * ${NEAR}
     union all
     select 'enrichments', null, used::float8, $3::float8
     from (select count(*) as used from (select from read.enrichment_work limit $3) w) o where used >= $3 * ${NEAR}`,
    [limits.deliveries, limits.payloadBytes, limits.outstanding],
  );
  return rows.map((row) => ({
    type: 'operator.queue_near',
    about: [row.queue, row.partner_id ?? '', utcDay(now)],
    data: row,
  }));
};

const EXPIRES_SOON_MS = 7 * DAY;

const expiringKeys: Watch = async ({ pool }, now) => {
  const { rows } = await pool.query(
    `select partner_id, key_id, name, expires_at from read.api_key
     where revoked_at is null and expires_at > $1 and expires_at <= $2`,
    [new Date(now), new Date(now + EXPIRES_SOON_MS)],
  );
  return rows.map(({ expires_at, ...row }) => {
    const at = isoTime(expires_at.getTime());
    return { type: 'operator.key_expires', about: [row.key_id, at], data: { ...row, expires_at: at } };
  });
};

const ceasedDomains: Watch = async ({ pool }, now) => {
  const { rows } = await pool.query(
    `select partner_id, tracker_id, domain_id, hostname, last_error from read.domain
     where activated_at is not null and last_error is not null`,
  );
  const type = 'operator.domain_ceased';
  // A resolver that does not answer says nothing of the domain.
  const unknown = ['dns_timeout', 'dns_error'];
  const found = rows.map((data) => ({
    about: data.domain_id,
    data,
    quiet: unknown.includes(data.last_error),
  }));
  return (await beginnings(pool, type, found, now)).map(({ about, data, began }) => ({
    type,
    about: [about, began],
    data,
  }));
};

const EACH_RUN: readonly Watch[] = [
  heldEndpoints,
  recoveredEndpoints,
  stoppedConsumers,
  auditDifferences,
  fullQueues,
  expiringKeys,
  ceasedDomains,
];

/** Records what the tables show now. Each condition is read by itself. @throws the first failure, after the others */
export async function watchForAlerts(deps: WatchDeps, watches: readonly Watch[] = EACH_RUN): Promise<void> {
  const now = deps.clock.now();
  await forEachIsolated(watches, async (watch) => recordAlerts(deps.pool, await watch(deps, now), now));
}

const KEPT_MS = 30 * DAY;

/** Forgets occurrences 30 days after they were delivered or given up. */
export async function forgetAlerts(pool: pg.Pool, now: number): Promise<void> {
  await pool.query('delete from work.operator_alert where coalesce(delivered_at, gave_up_at) < $1', [
    new Date(now - KEPT_MS),
  ]);
}
