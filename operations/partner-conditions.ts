/** Conditions of what a partner has: endpoints, custom domains, keys and trackers. */
import { DAY, HOUR } from '../domain/kernel/time.ts';
import { BREAKER_OPENS_AFTER } from '../domain/webhooks/events.ts';
import {
  type FailingEndpoint,
  failureText,
  listFailingEndpoints,
} from '../projections/webhooks/deliveries/health-readers.ts';
import { listCeasedDomains } from '../queries/domains/directory.ts';
import { listUsedAllowances, readAllowance } from '../queries/lookup/allowances.ts';
import { listExpiringKeys } from '../queries/partners/partners.ts';
import { listSilentTrackers } from '../queries/trackers/silent-trackers.ts';
import { type Condition, condition, type Notice } from './condition.ts';
import { countText, timeText } from './texts.ts';
import { KEY_EXPIRES_MS, MIN_FAILURES, NEAR } from './thresholds.ts';

function failuresText(endpoint: FailingEndpoint): string {
  const why = failureText(endpoint);
  return `${endpoint.failures_in_row} failures in a row${why === '' ? '' : `, ${why}`}`;
}

const endpointNotice = (
  { webhook_id, name }: FailingEndpoint,
  { tone, what }: { tone: Notice['tone']; what: string },
): Notice => ({
  tone,
  text: `Deliveries to “${name}” ${what}.`,
  href: `/dashboard/webhooks/${webhook_id}`,
  action: 'See the endpoint',
});

/** A resolver that does not answer tells the operator nothing of the domain, until the domain fails by it. */
const RESOLVER_ERRORS = ['dns_timeout', 'dns_error'];

const silenceText = (ms: number): string =>
  ms < 2 * DAY ? `${Math.floor(ms / HOUR)} hours` : `${Math.floor(ms / DAY)} days`;

export const PARTNER_CONDITIONS: readonly Condition[] = [
  condition({
    code: 'endpoint_held',
    severity: 'warning',
    // A partner sees it as soon as the breaker opens; the operator is alerted once it has been open for long.
    alertAfterHours: [1, 24],
    subjects: ({ pool, partnerId }) => listFailingEndpoints(pool, partnerId, BREAKER_OPENS_AFTER),
    text: (endpoint) =>
      `webhook endpoint “${endpoint.name}” (${endpoint.webhook_id}) of partner ${endpoint.partner_id} is held back by its circuit breaker: ${failuresText(endpoint)}`,
    alert: ({ webhook_id, partner_id, name, pending, state }) => ({
      about: webhook_id,
      isQuiet: state === 'suspended',
      occurrence: (began, hours) => [began, hours],
      data: (began, hours) => ({ webhook_id, partner_id, name, pending, held_since: began, hours }),
    }),
    notice: (endpoint) =>
      endpoint.state === 'suspended'
        ? null
        : endpointNotice(endpoint, { tone: 'bad', what: `are held back: ${failuresText(endpoint)}` }),
  }),
  condition({
    code: 'endpoint_failing',
    severity: 'warning',
    subjects: async ({ pool, partnerId }) =>
      (await listFailingEndpoints(pool, partnerId, MIN_FAILURES)).filter(({ state }) => state === 'open'),
    notice: (endpoint) => endpointNotice(endpoint, { tone: 'wait', what: `fail: ${failuresText(endpoint)}` }),
  }),
  condition({
    code: 'domain_ceased',
    severity: 'warning',
    subjects: ({ pool, partnerId }) => listCeasedDomains(pool, partnerId),
    text: ({ hostname, partner_id, status, last_error }) =>
      `custom domain ${hostname} of partner ${partner_id} does not point here any more (${status}, ${last_error})`,
    alert: ({ status, ...data }) => ({
      about: data.domain_id,
      isQuiet: status === 'active' && RESOLVER_ERRORS.includes(data.last_error),
      occurrence: (began) => [began],
      data: () => data,
    }),
    notice: ({ hostname, tracker_id, domain_id, status }) => ({
      tone: status === 'failed' ? 'bad' : 'wait',
      text:
        status === 'failed'
          ? `${hostname} no longer points here, so its snippet collects nothing.`
          : `${hostname} has ceased to point here. After three days its snippet stops collecting.`,
      href: `/dashboard/domains/${tracker_id}/${domain_id}`,
      action: 'See what its DNS lacks',
    }),
  }),
  condition({
    code: 'no_visits',
    severity: 'warning',
    isSlow: true,
    subjects: async ({ pool, partnerId, now }) =>
      (await listSilentTrackers(pool, partnerId, now)).map((tracker) => ({
        ...tracker,
        silentMs: now - Date.parse(tracker.last_visit_at),
      })),
    text: ({ name, tracker_id, partner_id, last_visit_at }) =>
      `tracker “${name}” (${tracker_id}) of partner ${partner_id} has had no visits since ${timeText(new Date(last_visit_at))}`,
    alert: ({ tracker_id, partner_id, name, last_visit_at, last_session_hour }) => ({
      about: `${tracker_id} ${last_session_hour}`,
      data: () => ({ partner_id, tracker_id, name, last_visit_at }),
    }),
    notice: ({ name, tracker_id, silentMs }) => ({
      tone: 'bad',
      text: `“${name}” has had no visits for ${silenceText(silentMs)}.`,
      href: `/dashboard/trackers/${tracker_id}`,
      action: 'See what its pixel sends',
    }),
  }),
  condition({
    code: 'allowance_near',
    severity: 'warning',
    isSlow: true,
    subjects: ({ pool, partnerId, now }) => listUsedAllowances(pool, partnerId, NEAR, now),
    text: ({ name, key_id, partner_id, used, limit }) =>
      `key “${name}” (${key_id}) of partner ${partner_id} has used ${countText(used)} of ${countText(limit)} new enrichments today`,
    alert: (used) => ({ about: `${used.key_id} ${used.day}`, data: () => used }),
    notice: ({ name, used, limit }) => ({
      tone: 'wait',
      text: `The key “${name}” has used ${used} of ${limit} new enrichments today.`,
      href: '/dashboard/usage',
      action: 'See its usage',
    }),
  }),
  condition({
    code: 'pending_near',
    severity: 'warning',
    subjects: async ({ pool, partnerId, now }) => {
      if (partnerId === null) return [];
      const { pending, pendingLimit: limit } = await readAllowance(pool, partnerId, now);
      return pending > 0 && pending >= limit * NEAR ? [{ pending, limit }] : [];
    },
    notice: ({ pending, limit }) => ({
      tone: 'wait',
      text: `${pending} enrichments are unfinished; from ${limit} on new ones are refused.`,
      href: '/dashboard/usage',
      action: 'See the usage',
    }),
  }),
  condition({
    code: 'key_expires',
    severity: 'warning',
    subjects: ({ pool, partnerId, now }) => listExpiringKeys(pool, partnerId, KEY_EXPIRES_MS, now),
    text: ({ name, key_id, partner_id, expires_at }) =>
      `key “${name}” (${key_id}) of partner ${partner_id} expires at ${timeText(new Date(expires_at))}`,
    alert: (key) => ({ about: `${key.key_id} ${key.expires_at}`, data: () => key }),
    notice: ({ name, key_id, expires_at }) => ({
      tone: 'wait',
      text: `The key “${name}” expires on ${expires_at.slice(0, 10)}.`,
      href: `/dashboard/keys/${key_id}`,
      action: 'Change its expiry',
    }),
  }),
];
