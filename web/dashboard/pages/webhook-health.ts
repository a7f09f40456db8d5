/** The health of an endpoint, in words and as charts. */

import { HOUR } from '../../../domain/kernel/time.ts';
import {
  type AttemptHour,
  type EndpointHealth,
  failureText,
  readHealth,
} from '../../../projections/webhooks/deliveries/health-readers.ts';
import type { PageContext } from '../api.ts';
import { lineChart } from '../charts.ts';
import { badge, type Content, count, type Html, html, tiles } from '../components.ts';

/** Waits until the read models of endpoints and deliveries have reached the head of the log. */
export const waitForDeliveries = ({ reads }: PageContext): Promise<boolean> =>
  reads.waitForHead(['webhooks', 'deliveries', 'payloads'])();

/** Reads the health of one endpoint, or (null) of all endpoints of the partner that are not deleted. */
export async function readHealthOf(
  page: PageContext,
  webhookId: string | null,
): Promise<readonly EndpointHealth[]> {
  const { reads, user, request } = page;
  await waitForDeliveries(page);
  const query = { partnerId: user.partner_id, webhookId, probeMs: reads.probeMs, now: request.receivedAt };
  return readHealth(reads.db, query);
}

/** The state of an endpoint in a word. */
export function stateBadge({ state }: EndpointHealth): Html {
  switch (state) {
    case 'healthy':
      return badge('Healthy', 'good');
    case 'failing':
      return badge('Failing', 'wait');
    case 'held_back':
      return badge('Held back', 'bad');
    case 'paused':
      return badge('Paused', 'off');
    case 'suspended':
      return badge('Suspended', 'off');
    case 'deleted':
      return badge('Deleted', 'off');
    case 'unused':
      return badge('No deliveries yet', 'off');
  }
}

/** Explains the state; null where the badge says all. */
export function stateDetail(page: PageContext, health: EndpointHealth): Content {
  const { state, since, failures_in_row: failures } = health;
  const why = failureText(health);
  const reason = why === '' ? '' : `, ${why}`;
  switch (state) {
    case 'failing':
      return html`${failures === 1 ? 'The last attempt failed' : `The last ${count(failures)} attempts failed`}${reason}${nextTry(page, health)}`;
    case 'held_back':
      return html`Since ${page.time(since)}: ${count(failures)} failures in a row${reason}${nextTry(page, health)}`;
    case 'suspended':
      return html`Since ${page.time(since)}: the account is suspended`;
    case 'paused':
    case 'deleted':
      return html`Since ${page.time(since)}`;
    case 'healthy':
    case 'unused':
      return null;
  }
}

/** Says what ends the pause or suspension of an endpoint. */
export const resumptionOf = ({ state }: EndpointHealth): string =>
  state === 'suspended' ? 'the operator resumes the account' : 'the endpoint is enabled';

const nextTry = (page: PageContext, { next_try_at }: EndpointHealth): Content =>
  next_try_at === null ? '' : html`; next try ${soon(page, next_try_at)}`;

/** Formats a time to come: `in 40 seconds`; one that has passed: `at any moment`. */
export const soon = (page: PageContext, iso: string): Content =>
  Date.parse(iso) <= page.request.receivedAt ? 'at any moment' : page.ago(iso);

/** The spans of the charts. `step`: hours from one point to the next. */
export const SPANS = {
  day: { text: 'Last 24 hours', hours: 24, step: 1 },
  week: { text: 'Last 7 days', hours: 168, step: 6 },
} as const;
export type Span = keyof typeof SPANS;

/** Returns where a span begins: at a whole step, so that its last one is the present; milliseconds. */
export function startOf(span: Span, now: number): number {
  const { hours, step } = SPANS[span];
  return now - (now % (step * HOUR)) - (hours - step) * HOUR;
}

/** The success rate and response time of an endpoint, as figures and as lines. Times without an attempt are gaps. */
export function attemptCharts(page: PageContext, span: Span, hours: readonly AttemptHour[]): Html {
  const { text, hours: length, step } = SPANS[span];
  const all = total(hours);
  if (all.attempts === 0) return html`<p class="soft">No attempts in the ${text.toLowerCase()}.</p>`;
  const byStep = Map.groupBy(hours, ({ hour }) => Math.floor(Date.parse(hour) / (step * HOUR)));
  const first = startOf(span, page.request.receivedAt);
  const label = labelIn(page.user.time_zone, span);
  const steps = Array.from({ length: length / step }, (_, nth) => {
    const at = first + nth * step * HOUR;
    return {
      ...total(byStep.get(at / (step * HOUR)) ?? []),
      label: label(at),
      tick: label(at).split(',')[0] ?? '',
    };
  });
  return html`${tiles([
    { name: 'Success rate', value: `${rate(all)} %` },
    { name: 'Attempts that succeeded', value: `${count(all.delivered)} of ${count(all.attempts)}` },
    { name: 'Average response', value: all.answered === 0 ? 'no answer' : `${count(responseMs(all))} ms` },
  ])}
  <div class="columns">${lineChart({
    title: 'Success rate',
    series: [{ name: 'Success rate', tone: 'good' }],
    points: steps.map((some) => ({ ...some, values: [some.attempts === 0 ? null : rate(some)] })),
    axis: 'Time',
    format: (value) => `${value} %`,
    highest: 100,
  })}
  ${lineChart({
    title: 'Response time',
    series: [{ name: 'Average response time' }],
    points: steps.map((some) => ({ ...some, values: [some.answered === 0 ? null : responseMs(some)] })),
    axis: 'Time',
    format: (value) => `${count(value)} ms`,
  })}</div>`;
}

function total(hours: readonly AttemptHour[]): Omit<AttemptHour, 'hour'> {
  const sum = { attempts: 0, delivered: 0, answered: 0, answered_ms: 0 };
  for (const hour of hours) {
    sum.attempts += hour.attempts;
    sum.delivered += hour.delivered;
    sum.answered += hour.answered;
    sum.answered_ms += hour.answered_ms;
  }
  return sum;
}

type Total = ReturnType<typeof total>;

/** Percent with one decimal, rounded down: 100 % is only said of no failure. */
const rate = ({ attempts, delivered }: Total): number => Math.floor((delivered / attempts) * 1_000) / 10;
const responseMs = ({ answered, answered_ms }: Total): number => Math.round(answered_ms / answered);

function labelIn(timeZone: string, span: Span): (at: number) => string {
  const { format } = new Intl.DateTimeFormat('en-GB', {
    ...(span === 'week' ? { day: 'numeric', month: 'short' } : {}),
    hour: '2-digit',
    minute: '2-digit',
    timeZone,
  });
  return format;
}
