/**
 * The operator's webhook (docs/runbook.md): scheduled jobs record an alert for each occurrence of a condition
 * (`operations/conditions.ts`); `deliver-alerts.ts` sends it. An alert's id is derived from its occurrence, so that any number of runs
 * and processes record it once.
 */
import type pg from 'pg';
import { v5 as uuidv5 } from 'uuid';
import { DAY, HOUR, isoTime } from '../../domain/kernel/time.ts';
import {
  ALERT_NAMESPACE,
  type Alert,
  type Condition,
  type ConditionContext,
} from '../../operations/condition.ts';
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

/** Records an alert, due at once, for each occurrence that has none yet. `now`: milliseconds. */
async function recordAlerts(pool: pg.Pool, occurrences: readonly Occurrence[], now: number): Promise<void> {
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
  await recordAlerts(pool, [occurrenceOf('operator.audit_difference', alert, isoTime(now), 0)], now);
}

/**
 * Returns when the current occurrence of each subject began: at the first run that found it after a run that did not. A subject that
 * ends and comes again is another occurrence. Processes agree on the time, because the table keeps it.
 */
async function startTimes(
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

const ALERT_RETENTION_MS = 30 * DAY;

/** An alert that became due before the retention was sent then, and may be forgotten: recording it again would send it twice. */
const isDue = (dueSinceMs: number): boolean => dueSinceMs >= 0 && dueSinceMs < ALERT_RETENTION_MS;

/** Records the alerts of a condition's subjects that have lasted for `alertAfterHours`. */
async function recordCondition(
  { code, alertAfterHours, findInTables }: Condition,
  context: ConditionContext,
): Promise<void> {
  const { pool, now } = context;
  const type = `operator.${code}` as const;
  const alerts = (await findInTables(context)).flatMap(({ alert }) => alert ?? []);
  const startOf = await startTimes(pool, type, alerts, now);
  const occurrences = alerts
    .filter(({ isQuiet }) => isQuiet !== true)
    .flatMap((alert) => {
      const since = startOf.get(alert.about) ?? isoTime(now);
      return alertAfterHours
        .filter((hours) => isDue(now - Date.parse(since) - hours * HOUR))
        .map((hours) => occurrenceOf(type, alert, since, hours));
    });
  await recordAlerts(pool, occurrences, now);
}

/** Records an alert for each endpoint whose breaker has closed after the operator was alerted that it was open. */
async function recordClosedBreakers({ pool, now }: ConditionContext): Promise<void> {
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
  await recordAlerts(
    pool,
    rows.map((data) => ({ type, name: `${data.webhook_id} ${data.held_since}`, data })),
    now,
  );
}

/** Records the alerts of conditions that hold now. One that cannot be read stops no other. @throws the first failure, at the end */
export async function recordConditions(
  { pool, clock, config }: Pick<ProcessorDeps, 'pool' | 'clock'> & Pick<ConditionContext, 'config'>,
  conditions: readonly Condition[],
): Promise<void> {
  const context = { pool, now: clock.now(), partnerId: null, config };
  await forEachIsolated(
    [...conditions.map((one) => () => recordCondition(one, context)), () => recordClosedBreakers(context)],
    (work) => work(),
  );
}

/** Forgets occurrences 30 days after they were delivered or given up. */
export async function forgetAlerts(pool: pg.Pool, now: number): Promise<void> {
  await pool.query('delete from work.operator_alert where coalesce(delivered_at, gave_up_at) < $1', [
    new Date(now - ALERT_RETENTION_MS),
  ]);
}
