/**
 * The operator's webhook (docs/runbook.md): records what it tells of the conditions (`operations/conditions.ts`), in a job of the
 * upkeep. Each occurrence has an id of its own, made from what it is about, so that any number of runs and processes record it once.
 */
import type pg from 'pg';
import { v5 as uuidv5 } from 'uuid';
import { DAY, HOUR, isoTime } from '../../domain/kernel/time.ts';
import { ALERT_NAMESPACE, type Alert, type Condition, type Reads } from '../../operations/condition.ts';
import { auditAlert } from '../../operations/work-conditions.ts';
import { queryWithSynchronousCommit } from '../../platform/postgres/transactions.ts';
import type { AuditDifference } from '../../queries/billing/audit-verdicts.ts';
import type { ProcessorDeps } from '../deps.ts';
import { forEachIsolated } from '../for-each.ts';

interface Occurrence {
  readonly type: `operator.${string}`;
  /** Names it among those of its type. */
  readonly name: string;
  readonly data: object;
}

const occurrenceOf = (
  type: Occurrence['type'],
  { about, occurrence, data }: Alert,
  began: string,
  hours: number,
): Occurrence => ({
  type,
  name: [about, ...(occurrence?.(began, hours) ?? [])].join(' '),
  data: data(began, hours),
});

/** Records occurrences that are not known yet, due at once. `now`: milliseconds. */
async function record(pool: pg.Pool, occurrences: readonly Occurrence[], now: number): Promise<void> {
  if (occurrences.length === 0) return;
  const created_at = isoTime(now);
  const rows = occurrences.map((occurrence) => {
    const { type, name, data } = occurrence;
    const id = `evt_operator_${uuidv5(`${type} ${name}`, ALERT_NAMESPACE)}`;
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

/** Records at once what an audit found. `now`: milliseconds. */
export async function recordAuditDifferences(
  pool: pg.Pool,
  partnerId: string,
  differences: readonly AuditDifference[],
  now: number,
): Promise<void> {
  const alert = auditAlert(partnerId, differences);
  await record(pool, [occurrenceOf('operator.audit_difference', alert, isoTime(now), 0)], now);
}

/**
 * Returns when each began: at the first run that saw it since a run that did not. One that ends and comes again begins anew, and so is
 * another occurrence. Runs of several processes agree, since the table keeps the beginnings.
 */
async function beginnings(
  pool: pg.Pool,
  type: Occurrence['type'],
  alerts: readonly Alert[],
  now: number,
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query<{ about: string; began_at: Date }>(
    `with standing as (
       insert into work.operator_condition (type, about, began_at)
       select distinct $1, about, $3::timestamptz from json_array_elements_text($2) as about
       on conflict (type, about) do update set about = excluded.about
       returning about, began_at),
     ended as (
       delete from work.operator_condition
       where type = $1 and about not in (select json_array_elements_text($2)))
     select about, began_at from standing`,
    [type, JSON.stringify(alerts.map(({ about }) => about)), new Date(now)],
  );
  return new Map(rows.map(({ about, began_at }) => [about, isoTime(began_at.getTime())]));
}

const KEPT_MS = 30 * DAY;

/** What was to be told longer ago was told, and may be forgotten. */
const isToTell = (dueSinceMs: number): boolean => dueSinceMs >= 0 && dueSinceMs < KEPT_MS;

/** Records what a condition's subjects are told of, once it has lasted for long enough. */
async function recordCondition({ code, tellAfter, find }: Condition, reads: Reads): Promise<void> {
  const { pool, now } = reads;
  const type = `operator.${code}` as const;
  const alerts = (await find(reads)).flatMap(({ alert }) => alert ?? []);
  const began = await beginnings(pool, type, alerts, now);
  const occurrences = alerts
    .filter(({ isQuiet }) => isQuiet !== true)
    .flatMap((alert) => {
      const since = began.get(alert.about) ?? isoTime(now);
      return tellAfter
        .filter((hours) => isToTell(now - Date.parse(since) - hours * HOUR))
        .map((hours) => occurrenceOf(type, alert, since, hours));
    });
  await record(pool, occurrences, now);
}

/** Records the recovery of endpoints that the operator has heard of, and whose breaker has closed since. */
async function recordRecoveries({ pool, now }: Reads): Promise<void> {
  const { rows } = await pool.query(
    `select distinct a.data ->> 'webhook_id' as webhook_id, a.data ->> 'partner_id' as partner_id, a.data ->> 'name' as name,
            a.data ->> 'held_since' as held_since
     from (select body::json -> 'data' as data from work.operator_alert where type = 'operator.endpoint_held') a
     where not exists (
       select from work.operator_condition c
       where c.type = 'operator.endpoint_held' and c.about = a.data ->> 'webhook_id'
         and c.began_at = (a.data ->> 'held_since')::timestamptz)`,
  );
  const type = 'operator.endpoint_recovered';
  await record(
    pool,
    rows.map((data) => ({ type, name: `${data.webhook_id} ${data.held_since}`, data })),
    now,
  );
}

/** Records what conditions hold now. Each is read by itself. @throws the first failure, after the others */
export async function recordConditions(
  { pool, clock, config }: Pick<ProcessorDeps, 'pool' | 'clock'> & Pick<Reads, 'config'>,
  conditions: readonly Condition[],
): Promise<void> {
  const reads = { pool, now: clock.now(), partnerId: null, config };
  await forEachIsolated(
    [...conditions.map((one) => () => recordCondition(one, reads)), () => recordRecoveries(reads)],
    (work) => work(),
  );
}

/** Forgets occurrences 30 days after they were delivered or given up. */
export async function forgetAlerts(pool: pg.Pool, now: number): Promise<void> {
  await pool.query('delete from work.operator_alert where coalesce(delivered_at, gave_up_at) < $1', [
    new Date(now - KEPT_MS),
  ]);
}
