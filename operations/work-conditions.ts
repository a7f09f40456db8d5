/** Conditions of the work behind the API: consumers of the log, providers, queues, the ledger, the operator's webhook. */
import { v5 as uuidv5 } from 'uuid';
import { utcDay } from '../domain/kernel/time.ts';
import { readDue } from '../projections/webhooks/deliveries/health-readers.ts';
import { listNearlyFullQueues } from '../projections/webhooks/deliveries/queue-readers.ts';
import { type AuditDifference, listFailedAudits } from '../queries/billing/audit-verdicts.ts';
import { listStopped } from '../queries/consumers.ts';
import { countOpenWork, readProviderStates } from '../queries/lookup/lookups.ts';
import { readOperatorWebhook } from '../queries/operations/operator-webhook.ts';
import { readSessions } from '../queries/processes.ts';
import {
  ALERT_NAMESPACE,
  type Alert,
  type Condition,
  type ConditionContext,
  condition,
} from './condition.ts';
import { countText, durationText, timeText } from './texts.ts';
import { DELIVERY_LATE_MS, NEAR } from './thresholds.ts';

/** Formats the event that stopped a consumer, and the reason in one line: issues of a zod schema each with their path. */
function stopText(stoppedBy: string): string {
  const [event = '', ...parts] = stoppedBy.split(': ');
  const reason = parts.filter((part) => !/^(projection|processor) [\w-]+$/.test(part)).join(': ');
  return `${event} (${issuesIn(reason).slice(0, MAX_REASON)})`;
}

const MAX_REASON = 200;
/** Characters of the reason in an alert. The alert's id is made from them, so another number would send known alerts again. */
const MAX_STOPPED_BY = 500;

function issuesIn(reason: string): string {
  try {
    const issues: { path: unknown[]; message: string }[] = JSON.parse(reason);
    return issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');
  } catch {
    return reason.split(/\s+/).join(' ');
  }
}

/** Makes the alert of an audit's differences. Another audit with the same differences makes the same alert. */
export const auditAlert = (partnerId: string, differences: readonly AuditDifference[]): Alert => ({
  about: `${partnerId} ${uuidv5(JSON.stringify(differences), ALERT_NAMESPACE)}`,
  data: () => ({
    partner_id: partnerId,
    differences: differences.length,
    kinds: [...new Set(differences.map(({ kind }) => kind))],
  }),
});

async function findNearlyFullQueues({ pool, config, now }: ConditionContext) {
  const limit = config.ENRICHMENT_OUTSTANDING;
  const [used, ofPartners] = await Promise.all([
    countOpenWork(pool, limit),
    listNearlyFullQueues(
      pool,
      { deliveries: config.WEBHOOK_QUEUE_PER_PARTNER, bytes: config.WEBHOOK_PAYLOAD_BYTES_PER_PARTNER },
      NEAR,
    ),
  ]);
  const outstanding = { queue: 'enrichments', partner_id: null, used, limit } as const;
  return [...ofPartners, ...(used >= limit * NEAR ? [outstanding] : [])].map((queue) => ({
    queue,
    day: utcDay(now),
  }));
}

const QUEUES = {
  webhook_deliveries: 'pending deliveries',
  webhook_payload_bytes: 'bytes of payloads',
  enrichments: 'unfinished enrichments',
} as const;

export const WORK_CONDITIONS: readonly Condition[] = [
  condition({
    code: 'consumer_stopped',
    severity: 'error',
    subjects: ({ pool }) => listStopped(pool),
    text: ({ kind, name, stopped_by }) => `${kind} ${name} stopped by an event: ${stopText(stopped_by)}`,
    alert: ({ kind, name, stopped_by }) => {
      const short = [...stopped_by].slice(0, MAX_STOPPED_BY).join('');
      return {
        about: `${kind} ${name}`,
        occurrence: (began) => [began, short],
        data: () => ({ kind, name, stopped_by: short }),
      };
    },
  }),
  condition({
    code: 'deliveries_late',
    severity: 'error',
    subjects: async ({ pool, now }) => {
      const { due, oldest_due_at } = await readDue(pool, null, now);
      const lateMs = oldest_due_at === null ? 0 : now - Date.parse(oldest_due_at);
      return lateMs < DELIVERY_LATE_MS ? [] : [{ due, lateMs }];
    },
    text: ({ due, lateMs }) => `${countText(due)} deliveries are due, the oldest for ${durationText(lateMs)}`,
  }),
  condition({
    code: 'provider_failing',
    severity: 'warning',
    subjects: async ({ pool, config, now }) =>
      (await readProviderStates(pool, config.providers, now)).filter(
        ({ failing_since }) => failing_since !== null,
      ),
    text: ({ name, failing_since, failed_today, calls_today }) =>
      `provider ${name} fails: the last time at ${timeText(new Date(failing_since ?? 0))}, ${countText(failed_today)} of ${countText(calls_today)} calls today; doorplate provider try IP says why`,
  }),
  condition({
    code: 'provider_budget',
    severity: 'warning',
    subjects: async ({ pool, config, now }) =>
      (await readProviderStates(pool, config.providers, now)).filter(({ budget_left }) => budget_left === 0),
    text: ({ name }) => `provider ${name} has used its budget of today`,
  }),
  condition({
    code: 'queue_near',
    severity: 'warning',
    subjects: findNearlyFullQueues,
    text: ({ queue: { queue, partner_id, used, limit } }) =>
      `${countText(used)} of ${countText(limit)} ${QUEUES[queue]}${partner_id === null ? '' : ` of partner ${partner_id}`}`,
    alert: ({ queue, day }) => ({
      about: `${queue.queue} ${queue.partner_id ?? ''} ${day}`,
      data: () => queue,
    }),
  }),
  condition({
    code: 'connections_near',
    severity: 'warning',
    subjects: async ({ pool }) => {
      const { used, limit } = await readSessions(pool);
      return used >= limit * NEAR ? [{ used, limit }] : [];
    },
    text: ({ used, limit }) =>
      `${countText(used)} of ${countText(limit)} connections of PostgreSQL (max_connections) are used`,
  }),
  condition({
    code: 'audit_difference',
    severity: 'warning',
    subjects: ({ pool }) => listFailedAudits(pool),
    text: ({ partner_id, differences }) =>
      `the last audit of partner ${partner_id} found ${countText(differences.length)} differences`,
    alert: ({ partner_id, differences }) => auditAlert(partner_id, differences),
  }),
  condition({
    code: 'operator_webhook_failing',
    severity: 'warning',
    subjects: async ({ pool, config, now }) => {
      if (config.OPERATOR_WEBHOOK_URL === undefined) return [];
      const { failing_since, pending, last_error } = await readOperatorWebhook(pool);
      return failing_since === null ? [] : [{ pending, last_error, forMs: now - Date.parse(failing_since) }];
    },
    text: ({ pending, last_error, forMs }) =>
      `the operator's webhook has not accepted ${countText(pending)} alerts for ${durationText(forMs)}: ${last_error}`,
  }),
];
