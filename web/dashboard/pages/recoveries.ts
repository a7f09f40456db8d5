import { Temporal } from 'temporal-polyfill';
import type { Reply } from '../../../http/contract/route.ts';
import { countRecoverable } from '../../../projections/webhooks/deliveries/recovery-readers.ts';
import type { WebhookBody } from '../../../read-api/webhooks/endpoint-schemas.ts';
import type { RecoveryBody } from '../../../read-api/webhooks/recovery-schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { errorAnswer, type PageContext, type Refused, textOf } from '../api.ts';
import { count, counted, facts, field, form, html, meter, notice, panel } from '../components.ts';
import { show } from '../layout.ts';
import { filled, get, type PageRoute, post } from '../routes.ts';
import { linkTo } from '../scope.ts';
import { instantOf } from '../times.ts';
import { readHealthOf, resumptionOf, stateBadge, stateDetail } from './webhook-health.ts';

const WEBHOOK = '/v1/webhooks/:webhook_id';
const PATH = '/dashboard/webhooks/:webhook_id';

/** Retrying what an outage of a receiver left: since when, how many, and the progress. */
export const recoveryPages: readonly PageRoute[] = [
  get(`${PATH}/recover`, (page) => choose(page), { needs: 'member' }),
  post(`${PATH}/deliveries/retry`, 'member', recover),
  get(`${PATH}/recoveries/:recovery_id`, progress),
];

const pathOf = ({ request }: PageContext): string => filled(PATH, request.params);

const DAY_MS = 86_400_000;
const LOCAL = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

/**
 * Reads an instant, a UTC day, or a time of the reader's zone as its field sends it; null: none of them. Of an hour that the
 * clocks repeat it is the earlier one, so that no part of an outage is left out.
 */
export function instantIn(timeZone: string, text: string): string | null {
  if (INSTANT.test(text)) return instantOf(text) === null ? null : text;
  if (DATE.test(text)) {
    const at = instantOf(text);
    return at === null ? null : new Date(at).toISOString();
  }
  if (!LOCAL.test(text) || instantOf(`${text}:00Z`) === null) return null;
  return new Date(
    Temporal.PlainDateTime.from(text).toZonedDateTime(timeZone).epochMilliseconds,
  ).toISOString();
}

/** An instant as a field of the reader's zone shows it. */
export const localText = (timeZone: string, at: number): string =>
  Temporal.Instant.fromEpochMilliseconds(at)
    .toZonedDateTimeISO(timeZone)
    .toPlainDateTime()
    .toString({ smallestUnit: 'minute' });

const NO_TIME = errorAnswer(400, 'invalid_date', 'Choose a date and time of the last 30 days.');

const MOST_COUNTED = 1_000;

async function choose(page: PageContext, refused: Refused = null): Promise<Reply> {
  const endpoint = await page.api<WebhookBody>('GET', WEBHOOK);
  const at = pathOf(page);
  if (!endpoint.ok) {
    const up = ['/dashboard/webhooks', 'Webhooks'] as const;
    return show(page, {
      title: 'Retry after an outage',
      section: 'Webhooks',
      up,
      refused: endpoint,
      content: '',
    });
  }
  const { id, name } = endpoint.body;
  const zone = page.user.time_zone;
  const now = page.request.receivedAt;
  const asked = page.query.get('since') ?? textOf(page, 'since');
  const instant = asked === '' ? null : instantIn(zone, asked);
  const since = instant !== null && isRecent(instant, now) ? instant : null;
  const [health] = await readHealthOf(page, id);
  const heldBack = health?.state === 'held_back';
  const found =
    since === null
      ? null
      : await countRecoverable(page.reads.pool, { webhookId: id, since, heldBack, now }, MOST_COUNTED + 1);
  return show(page, {
    title: `Retry deliveries to “${name}”`,
    section: 'Webhooks',
    up: [`${at}/deliveries`, 'All deliveries'],
    refused: refused ?? (asked !== '' && since === null ? NO_TIME : null),
    content: html`<p>Choose when the outage began. Deliveries that were queued since then are retried, once each, if they failed or wait
        because earlier attempts failed. Each begins a new cycle of attempts with the same event id. Nothing is billed.</p>
    <form class="panel row" method="get" action="${at}/recover">
      ${field('Queued since', 'since', {
        type: 'datetime-local',
        required: true,
        value: localText(zone, since === null ? now - DAY_MS : Date.parse(since)),
        hint: zone,
      })}
      <button class="quiet">Count</button></form>
    ${health && health.state !== 'healthy' && health.state !== 'unused' && notice(html`<p>${stateBadge(health)} ${stateDetail(page, health)}. Fix the receiver first: what fails again waits again.</p>`)}
    ${since !== null && found !== null && countPanel(page, at, since, found)}`,
  });
}

const isRecent = (since: string, now: number): boolean =>
  Date.parse(since) <= now && Date.parse(since) >= now - 30 * DAY_MS;

function countPanel(page: PageContext, at: string, since: string, found: number) {
  if (found === 0)
    return panel(
      'Nothing to retry',
      html`<p>No delivery that was queued since ${page.time(since)} failed or waits.</p>`,
    );
  const many = found > MOST_COUNTED ? `more than ${count(MOST_COUNTED)}` : count(found);
  const what = found === 1 ? 'delivery' : 'deliveries';
  return panel(
    `${many} ${what}`.replace(/^m/, 'M'),
    form(
      page,
      `${at}/deliveries/retry`,
      html`<input type="hidden" name="since" value="${since}">
      <p>Queued since ${page.time(since)}. They are sent with at most 32 requests at a time; your receiver should be ready for
        them.</p>
      <button>Retry ${many} ${what}</button>`,
    ),
  );
}

async function recover(page: PageContext): Promise<Reply> {
  const since = instantIn(page.user.time_zone, textOf(page, 'since'));
  if (since === null) return choose(page, NO_TIME);
  const started = await page.api<{ readonly recovery_id: string }>('POST', `${WEBHOOK}/recover`, {
    body: { since },
  });
  if (!started.ok) return choose(page, started);
  return redirectAfterPost(`${pathOf(page)}/recoveries/${started.body.recovery_id}`);
}

async function progress(page: PageContext): Promise<Reply> {
  const { webhook_id = '', recovery_id } = page.request.params;
  const found = await page.api<RecoveryBody>('GET', `${WEBHOOK}/recoveries/:recovery_id`);
  const at = pathOf(page);
  if (!found.ok) {
    const up = [`${at}/deliveries`, 'All deliveries'] as const;
    return show(page, {
      title: 'Retry after an outage',
      section: 'Webhooks',
      up,
      refused: found,
      content: '',
    });
  }
  const { since, created_at, deliveries, pending, delivered, failed, cancelled, expired } = found.body;
  const [health] = await readHealthOf(page, webhook_id);
  const isDone = pending === 0;
  const isStuck =
    health?.state === 'held_back' || health?.state === 'paused' || health?.state === 'suspended';
  const link = (status: string, n: number) =>
    n === 0 ? count(n) : html`<a href="${linkTo(`${at}/deliveries`, { status })}">${count(n)}</a>`;
  return show(page, {
    title: isDone ? 'Retry done' : 'Retry under way',
    section: 'Webhooks',
    up: [`${at}/deliveries`, 'All deliveries'],
    content: html`${
      isDone
        ? notice(
            html`<p>Done: ${counted(delivered, 'delivery', 'deliveries')} of ${count(deliveries)} arrived.${failed > 0 && html` ${count(failed)} failed again.`}${cancelled > 0 && html` ${count(cancelled)} waited no more when their turn came.`}</p>`,
            failed === 0 ? 'good' : 'wait',
          )
        : html`<p class="reload" role="status">${count(deliveries - pending)} of ${counted(deliveries, 'delivery', 'deliveries')} done. This page looks again by itself.</p>`
    }
    ${health && isStuck && !isDone && notice(html`<p>${stateBadge(health)} ${stateDetail(page, health)}. The deliveries wait until ${health.state === 'held_back' ? 'the endpoint answers' : resumptionOf(health)}.</p>`)}
    ${deliveries > 0 && meter(delivered / deliveries, 'good')}
    ${facts([
      ['Queued since', page.time(since)],
      ['Began', page.time(created_at)],
      ['Deliveries', count(deliveries)],
      ['Pending', link('pending', pending)],
      ['Delivered', link('delivered', delivered)],
      ['Failed', link('failed', failed)],
      ['Cancelled', count(cancelled)],
      ['Expired', count(expired)],
    ])}
    <noscript><p><a href="${at}/recoveries/${recovery_id}">Look again</a></p></noscript>`,
  });
}
