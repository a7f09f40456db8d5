import { DAY } from '../../../domain/kernel/time.ts';
import type { Attempt } from '../../../domain/webhooks/events.ts';
import { asUuid } from '../../../http/contract/parameters.ts';
import type { Reply } from '../../../http/contract/route.ts';
import { type EndpointHealth, failureText } from '../../../projections/webhooks/deliveries/health-readers.ts';
import {
  findDelivery,
  listAttempts,
  searchDeliveries,
} from '../../../projections/webhooks/deliveries/readers.ts';
import { deliveryFields } from '../../../read-api/webhooks/answer.ts';
import type { DeliveryBody } from '../../../read-api/webhooks/delivery-schemas.ts';
import type { WebhookBody } from '../../../read-api/webhooks/endpoint-schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { mayChange, type PageContext, type Refused } from '../api.ts';
import { dayLabel } from '../charts.ts';
import * as ui from '../components.ts';
import { type Content, type Html, html } from '../components.ts';
import { type Page, show } from '../layout.ts';
import { chips, filterMenu, picker } from '../pickers.ts';
import { type Resource, resourceRoutes, showOne } from '../resource.ts';
import { filled, get, type PageRoute, post } from '../routes.ts';
import { linkTo } from '../scope.ts';
import { instantOf } from '../times.ts';
import { readHealthOf, resumptionOf, soon, stateBadge, waitForDeliveries } from './webhook-health.ts';
import { endpointHead, unfinishedText } from './webhooks.ts';

const WEBHOOK = '/v1/webhooks/:webhook_id';
const DELIVERY = `${WEBHOOK}/deliveries/:delivery_id`;
const PATH = '/dashboard/webhooks/:webhook_id/deliveries';

type SentDelivery = DeliveryBody & { readonly event: unknown };

const delivery: Resource<SentDelivery> = {
  path: `${PATH}/:delivery_id`,
  find: ({ api }) => api<SentDelivery>('GET', DELIVERY),
  missing: (page, why, refused) => showHistory(page, refused ?? why),
  show: async (page, found, refused) =>
    show(page, { ...deliveryView(page, await loadDelivery(page, found)), refused }),
  actions: [],
};

export const deliveryPages: readonly PageRoute[] = [
  get(PATH, (page) => showHistory(page)),
  ...resourceRoutes(delivery),
  post(`${delivery.path}/retry`, 'member', retry),
];

const endpointOf = ({ request }: PageContext): string => request.params.webhook_id ?? '';
const pathOf = ({ request }: PageContext): string => filled(PATH, request.params);

const STATES = [
  ['pending', 'Pending'],
  ['delivered', 'Delivered'],
  ['failed', 'Failed'],
  ['cancelled', 'Cancelled'],
  ['expired', 'Expired'],
] as const;
const TYPES = [
  ['session.created', 'session.created'],
  ['reveal.completed', 'reveal.completed'],
  ['webhook.test', 'webhook.test'],
] as const;

const DATE = /^\d{4}-\d{2}-\d{2}$/;
/** A position of up to 18 digits is a bigint of PostgreSQL. */
const CURSOR = /^(\d{4}-\d{2}-\d{2}T[\d:.]{8,12}Z),(\d{1,18})$/;

const isDay = (text: string): boolean => DATE.test(text) && instantOf(text) !== null;

/** Returns the midnight that begins a UTC day, or one some days later; null without a day, or after the year 9999. */
function midnight(day: string, daysLater = 0): string | null {
  const at = day === '' ? null : instantOf(day);
  const text = at === null ? null : new Date(at + daysLater * DAY).toISOString();
  return text?.startsWith('+') ? null : text;
}

/** Reads the filters in the address. `texts`: what the form shows. `isWrong`: one of them is not understood. */
function filtersIn({ query }: PageContext) {
  const given = (name: string): string => (query.get(name)?.trim() ?? '').slice(0, 200);
  const chosen = <Value extends string>(name: string, options: readonly (readonly [Value, string])[]) =>
    options.map(([value]) => value).find((value) => value === given(name)) ?? null;
  const [, created_at, position] = CURSOR.exec(given('before')) ?? [];
  const texts = {
    status: given('status'),
    type: given('type'),
    since: given('since'),
    until: given('until'),
  };
  const filters = {
    status: chosen('status', STATES),
    type: chosen('type', TYPES),
    from: isDay(texts.since) ? midnight(texts.since) : null,
    to: isDay(texts.until) ? midnight(texts.until, 1) : null,
    after: created_at && position && instantOf(created_at) !== null ? { created_at, position } : null,
  };
  const isWrong =
    (texts.status !== '' && filters.status === null) ||
    (texts.type !== '' && filters.type === null) ||
    [texts.since, texts.until].some((text) => text !== '' && !isDay(text));
  return { texts, filters, id: given('id'), isWrong };
}

const isAny = (texts: Readonly<Record<string, string>>): boolean =>
  Object.values(texts).every((text) => text === '');

const PAGE = 50;

/** Finds a page of an endpoint's deliveries by the filters, newest first. One more than a page shows that there are older ones. */
async function search({ reads, request }: PageContext, webhook: WebhookBody, filters: Filters) {
  const deleted = webhook.deleted_at !== null;
  const all = { webhookId: webhook.id, deleted, limit: PAGE + 1, now: request.receivedAt };
  return searchDeliveries(reads.db, { ...filters, ...all });
}

/** Finds a delivery by its id or by that of its event. */
async function findOne(page: PageContext, { id: webhookId, deleted_at }: WebhookBody, id: string) {
  const reads = { db: page.reads.db, waitForHead: () => waitForDeliveries(page) };
  const wanted = asUuid(id) ?? page.reads.deliveryId(webhookId, id);
  const of = { webhookId, deleted: deleted_at !== null };
  const found = await findDelivery(reads, of, wanted, page.request.receivedAt);
  return found === null ? [] : [found];
}

async function showHistory(page: PageContext, refused: Refused = null): Promise<Reply> {
  const endpoint = await page.api<WebhookBody>('GET', WEBHOOK);
  if (!endpoint.ok) {
    const up = ['/dashboard/webhooks', 'Webhooks'] as const;
    return show(page, {
      title: 'Deliveries',
      section: 'Webhooks',
      up,
      refused: refused ?? endpoint,
      content: '',
    });
  }
  return show(page, { ...historyView(page, await loadHistory(page, endpoint.body)), refused });
}

async function loadHistory(page: PageContext, webhook: WebhookBody) {
  const filtered = filtersIn(page);
  const { filters, id, isWrong } = filtered;
  const [[health], found] = await Promise.all([
    readHealthOf(page, webhook.id),
    isWrong ? [] : id === '' ? search(page, webhook, filters) : findOne(page, webhook, id),
  ]);
  const rows = found.slice(0, PAGE).map((row) => ({ ...deliveryFields(row), position: row.position }));
  return { ...filtered, webhook, health, rows, hasMore: found.length > PAGE };
}
type History = Awaited<ReturnType<typeof loadHistory>>;
type Filters = ReturnType<typeof filtersIn>['filters'];

function historyView(page: PageContext, model: History): Page {
  const { texts, id, webhook, health, rows, hasMore } = model;
  const at = pathOf(page);
  const last = rows.at(-1);
  const next = hasMore && last && { ...texts, before: `${last.created_at},${last.position}` };
  const recover = webhook.deleted_at === null && mayChange(page);
  return {
    ...endpointHead(page, webhook, '/deliveries', health),
    pickers: html`${filterMenu(
      page,
      ['since', 'until', 'id'],
      html`${dayField('From', 'since', texts.since)}
      ${dayField('To', 'until', texts.until)}
      ${ui.field('Event or delivery id', 'id', { value: id, maxlength: 200 })}`,
    )}${picker(page, 'State', 'status', [['', 'All states'], ...STATES], texts.status)}${picker(page, 'Event', 'type', [['', 'All events'], ...TYPES], texts.type)}`,
    chips: chips(page, [
      texts.since !== '' && {
        text: `From ${dayText(texts.since)}`,
        names: ['since'],
        error: dayError(texts.since),
      },
      texts.until !== '' && {
        text: `To ${dayText(texts.until)}`,
        names: ['until'],
        error: dayError(texts.until),
      },
      id !== '' && { text: `Id ${id}`, names: ['id'] },
    ]),
    content: html`${isWaiting(health) && rows.length > 0 && waitingNotice(page, health)}
    ${ui.tableOr(
      emptyHistory(model, at),
      'Deliveries, the newest first',
      ['Event', 'State', 'Attempts', 'Last attempt', 'Queued'],
      rows.map((delivery) => [
        html`<a href="${linkTo(`${at}/${delivery.id}`, texts)}">${delivery.type}</a> <small>${shortId(delivery.event_id)}</small>`,
        html`${stateOf(delivery, health)}${detailOf(page, delivery, health)}`,
        ui.count(delivery.attempts),
        html`${page.ago(delivery.last_attempt_at, '–')} <small>${failureText(delivery)}</small>`,
        page.time(delivery.created_at),
      ]),
      { numeric: [2], minor: [4] },
    )}
    ${rows.length > 0 && ui.pager(howMany(model), next ? { path: at, query: next, text: 'Older deliveries' } : null)}
    ${recover && webhook.deliveries.failed + webhook.deliveries.pending > 0 && recoverPanel(webhook)}`,
  };
}

const dayText = (text: string): string => (isDay(text) ? dayLabel(text) : text);

const dayError = (text: string): string | false =>
  text !== '' && !isDay(text) && `“${text}” is not a day, so nothing is found.`;

function dayField(label: string, name: 'since' | 'until', value: string): Html {
  const error = dayError(value);
  return ui.field(label, name, { type: 'date', value, ...(error === false ? {} : { error }) });
}

function emptyHistory({ texts, filters, id, webhook }: History, at: string): Html {
  if (id === '' && filters.after === null && isAny(texts))
    return ui.nothingYet(
      'No deliveries yet',
      html`They appear as events happen. <a href="/dashboard/webhooks/${webhook.id}/testing">Send a test</a> to see one.`,
    );
  return ui.nothingYet(
    filters.after === null ? 'No deliveries match' : 'No older deliveries',
    html`None with these filters in the last 90 days. <a href="${at}">Clear the filters</a>`,
  );
}

/** The end of an id, because UUIDs of version 7 from the same time begin alike. */
const shortId = (id: string): string => `…${id.slice(-8)}`;

/** Says once above the list what the pending deliveries of an endpoint wait for that takes none. */
const waitingNotice = (page: PageContext, health: Waiting): Html =>
  ui.notice(
    html`<p>${stateBadge(health)} ${
      health.state === 'held_back'
        ? html`Pending deliveries go out ${waitOf(page, health)}.`
        : `Pending deliveries wait until ${resumptionOf(health)}.`
    }</p>`,
  );

/** Says how many deliveries are shown, and of how many where a total is kept: of a state, or of all. */
function howMany({ rows, hasMore, webhook: { deliveries }, filters, id }: History): string {
  const { status, type, from, to, after } = filters;
  const shown = rows.length;
  const isCounted = type === null && from === null && to === null && after === null && id === '';
  if (!isCounted) return `${ui.counted(shown, 'delivery', 'deliveries')}${hasMore ? ', and more' : ''}.`;
  const all = Object.values(deliveries).reduce((sum, n) => sum + n, 0);
  const total = Math.max(status === null ? all : deliveries[status], shown);
  return `${ui.count(shown)} of ${ui.counted(total, 'delivery', 'deliveries')}.`;
}

const recoverPanel = ({ id, deliveries }: WebhookBody): Html =>
  ui.panel(
    'Retry after an outage',
    html`<p>${unfinishedText(deliveries)} Choose since when; the next page says how many are retried.</p>
    <p><a class="button quiet" href="/dashboard/webhooks/${id}/recover">Retry what failed or waits…</a></p>`,
  );

const TONES = {
  pending: 'wait',
  delivered: 'good',
  failed: 'bad',
  cancelled: 'off',
  expired: 'off',
} as const;

/** The states in which an endpoint is sent nothing but a probe now and then. */
const WAITING = { held_back: 'held back', paused: 'paused', suspended: 'suspended' } as const;
type Waiting = EndpointHealth & { readonly state: keyof typeof WAITING };

const isWaiting = (health: EndpointHealth | undefined): health is Waiting =>
  health !== undefined && health.state in WAITING;

/** What the deliveries of an endpoint wait for. */
const waitOf = (page: PageContext, health: Waiting): Content =>
  health.state === 'held_back'
    ? html`when the endpoint answers again${health.next_try_at !== null && html`; next probe ${soon(page, health.next_try_at)}`}`
    : `when ${resumptionOf(health)}`;

function stateOf({ state }: DeliveryBody, health: EndpointHealth | undefined): Html {
  if (state !== 'pending') return ui.badge(state, TONES[state]);
  return ui.badge(isWaiting(health) ? `waiting: ${WAITING[health.state]}` : 'pending', 'wait');
}

/** Says when a pending delivery is tried next, unless the notice above the list does. */
const detailOf = (page: PageContext, delivery: DeliveryBody, health: EndpointHealth | undefined): Content =>
  delivery.state === 'pending' &&
  !isWaiting(health) &&
  html` <small>next attempt ${nextOf(page, delivery, health)}</small>`;

/** Says when a delivery is tried next; never a time that has passed. */
function nextOf(page: PageContext, delivery: DeliveryBody, health: EndpointHealth | undefined): Content {
  const { state, next_attempt_at } = delivery;
  if (state !== 'pending' || next_attempt_at === null) return '–';
  return isWaiting(health) ? waitOf(page, health) : soon(page, next_attempt_at);
}

async function loadDelivery(page: PageContext, { event, ...delivery }: SentDelivery) {
  const webhookId = endpointOf(page);
  const [[health], attempts] = await Promise.all([
    readHealthOf(page, webhookId),
    listAttempts(page.reads.db, webhookId, delivery.id),
  ]);
  return { delivery, event, webhookId, health, attempts };
}

function deliveryView(
  page: PageContext,
  { delivery, event, webhookId, health, attempts }: Awaited<ReturnType<typeof loadDelivery>>,
): Page {
  const at = pathOf(page);
  // The filters of the list stay in the address, for the way back.
  const { texts } = filtersIn(page);
  return {
    title: `Delivery of ${delivery.type}`,
    section: 'Webhooks',
    up: [linkTo(at, texts), isAny(texts) ? 'All deliveries' : 'Back to the list'],
    state: stateOf(delivery, health),
    // A new cycle of attempts with the same event id.
    actions:
      ['delivered', 'failed'].includes(delivery.state) &&
      mayChange(page) &&
      ui.form(
        page,
        linkTo(`${at}/${delivery.id}/retry`, texts),
        html`<button${delivery.state === 'delivered' && html` class="quiet"`}>${delivery.state === 'failed' ? 'Retry' : 'Deliver once more'}</button>`,
      ),
    showsCountry: true,
    content: html`${advice(page, delivery, health, webhookId)}
    ${ui.facts([
      ['Event', html`<code>${delivery.event_id}</code>`],
      ['Queued', page.time(delivery.created_at)],
      ['Delivered', page.time(delivery.delivered_at, '–')],
      ['Next attempt', nextOf(page, delivery, health)],
      ['Id', html`<code>${delivery.id}</code>`],
    ])}
    ${timeline(page, delivery, attempts)}
    ${ui.panel('What is sent', html`${headers(page, delivery)}${payload(event)}`)}`,
  };
}

const payload = (event: unknown): Html =>
  event === null || event === undefined
    ? html`<p>The payload is no longer kept.</p>`
    : html`<h3>Body</h3>${ui.copyable('Body of the event', JSON.stringify(event, null, 2))}
          <p class="soft">Sent on one line, without these spaces: verify the signature over the bytes that arrive.</p>`;

/** Says what to do about a failure. */
function helpFor({ error, http_status }: DeliveryBody): string {
  switch (error) {
    case 'timeout':
      return 'Answer within ten seconds: store the event, answer with a 2xx, and work on it afterwards.';
    case 'dns':
      return 'Check that the host name of the URL exists and has public A or AAAA records.';
    case 'connect':
      return 'Check that a server listens on the port of the URL and that no firewall is in between.';
    case 'tls':
      return 'Check the certificate: it must be of that name, not expired, from a known authority, with its chain.';
    case 'blocked_address':
      return 'Point the host name to public addresses alone.';
    case 'redirect':
      return 'Redirects are not followed: create an endpoint with the URL that it leads to.';
    case 'own_origin':
      return 'The URL leads to this service: create an endpoint with the URL of a server of yours.';
    case 'http_status':
      return helpForStatus(http_status);
    case null:
      return '';
  }
}

function helpForStatus(status: number | null): string {
  switch (status) {
    case 401:
    case 403:
      return 'Your server refuses the request: it must ask for no login, and check the signature with the secret of this endpoint.';
    case 404:
    case 410:
      return 'Your server does not know the path of the URL. An URL cannot be changed: create another endpoint.';
    default:
      return 'See the log of your server at the time of the attempt; a delivery counts once it answers with a 2xx.';
  }
}

function advice(
  page: PageContext,
  delivery: DeliveryBody,
  health: EndpointHealth | undefined,
  webhookId: string,
): Content {
  const { state, error, next_attempt_at } = delivery;
  const isUnderWay =
    state === 'pending' &&
    !isWaiting(health) &&
    Date.parse(next_attempt_at ?? '') <= page.request.receivedAt + 60_000;
  const reload =
    isUnderWay &&
    html`<p class="reload soft">An attempt is about to be made; this page looks again by itself.</p>`;
  if (error === null || (state !== 'pending' && state !== 'failed')) return reload;
  const recover =
    state === 'pending' &&
    mayChange(page) &&
    html` Then <a href="/dashboard/webhooks/${webhookId}/recover">retry what failed or waits</a>, or wait for the next attempt.`;
  return html`${ui.notice(html`<p>The last attempt failed: ${failureText(delivery)}. ${helpFor(delivery)}${recover}</p>`)}${reload}`;
}

function timeline(page: PageContext, { attempts: made }: DeliveryBody, attempts: readonly Attempt[]): Html {
  if (made === 0) return html`<p>No attempt was made yet.</p>`;
  return html`${ui.table(
    'Attempts, the newest first',
    ['Attempt', 'Started', 'Duration', 'Result'],
    attempts.map((attempt, nth) => [
      ui.count(made - nth),
      page.time(attempt.started_at),
      attempt.duration_ms === null ? '–' : `${ui.count(attempt.duration_ms)} ms`,
      attempt.error === null
        ? html`${ui.badge('delivered', 'good')} HTTP ${attempt.http_status}`
        : html`${ui.badge('failed', 'bad')} ${failureText(attempt)}`,
    ]),
    { numeric: [2] },
  )}
  ${attempts.length < made && html`<p class="soft">${ui.counted(made - attempts.length, 'earlier attempt is', 'earlier attempts are')} counted and not listed.</p>`}`;
}

/** The headers of an attempt. */
function headers(page: PageContext, { event_id, last_attempt_at }: DeliveryBody): Html {
  const lines = [
    'content-type: application/json',
    'user-agent: Doorplate-Webhooks/1',
    `webhook-id: ${event_id}`,
    `webhook-timestamp: ${last_attempt_at === null ? '…' : Math.floor(Date.parse(last_attempt_at) / 1_000)}`,
    'webhook-signature: v1,…',
  ];
  return html`<h3>Headers${last_attempt_at !== null && html` of the attempt of ${page.time(last_attempt_at)}`}</h3>
    ${ui.copyable('Headers', lines.join('\n'))}
    <p class="soft">The signature is HMAC-SHA-256 with the signing secret over id, timestamp and body. There are two while a secret is
      rotated. Each attempt has its own timestamp and signature.</p>`;
}

async function retry(page: PageContext): Promise<Reply> {
  const retried = await page.api('POST', `${DELIVERY}/retry`);
  if (!retried.ok) return showOne(delivery, page, retried);
  const path = filled(delivery.path, page.request.params);
  return redirectAfterPost(linkTo(path, filtersIn(page).texts), 'delivery-retried');
}
