import type { Reply } from '../../../http/contract/route.ts';
import type { DeliveryBody, DeliveryState } from '../../../read-api/webhooks/delivery-schemas.ts';
import type { WebhookBody } from '../../../read-api/webhooks/endpoint-schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { type ErrorAnswer, type Refused, textOf, type Visit } from '../api.ts';
import {
  badge,
  copyable,
  count,
  counted,
  facts,
  field,
  form,
  html,
  nothingYet,
  select,
  tableOr,
} from '../components.ts';
import { show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';

export interface RetriedAll {
  readonly retried: number;
  /** Whether none of them is left. */
  readonly all: boolean;
  /** Why it stopped before its end; null: it did not, or its time limit passed. */
  readonly refused: ErrorAnswer | null;
}

export interface DeliveryDeps {
  /**
   * Retries failed deliveries of an endpoint that were queued since a UTC day (`YYYY-MM-DD`), as many as the time
   * limit allows.
   */
  readonly retryFailedSince: (visit: Visit, webhookId: string, day: string) => Promise<RetriedAll>;
}

const WEBHOOK = '/v1/webhooks/:webhook_id';
const DELIVERY = `${WEBHOOK}/deliveries/:delivery_id`;
const PATH = '/dashboard/webhooks/:webhook_id/deliveries';
const STATES: readonly DeliveryState[] = ['pending', 'delivered', 'failed', 'cancelled', 'expired'];

export const deliveryPages = (deps: DeliveryDeps): PageRoute[] => [
  { method: 'GET', path: PATH, handle: (visit) => history(visit) },
  { method: 'POST', path: `${PATH}/retry`, handle: (visit) => retryAll(deps, visit) },
  { method: 'GET', path: `${PATH}/:delivery_id`, handle: (visit) => one(visit) },
  { method: 'POST', path: `${PATH}/:delivery_id/retry`, handle: (visit) => retry(visit) },
];

const endpointOf = ({ request }: Visit) => ({ webhook_id: request.params.webhook_id ?? '' });
const pathOf = (visit: Visit): string =>
  `/dashboard/webhooks/${encodeURIComponent(endpointOf(visit).webhook_id)}/deliveries`;

interface DeliveryList {
  readonly deliveries: readonly DeliveryBody[];
  readonly next_cursor: string;
}

async function history(visit: Visit, refused: Refused = null, notice: string | null = null): Promise<Reply> {
  const status = visit.query.get('status') ?? '';
  const cursor = visit.query.get('cursor') ?? '';
  const params = endpointOf(visit);
  const [endpoint, page] = await Promise.all([
    visit.api<WebhookBody>('GET', WEBHOOK, { params }),
    visit.api<DeliveryList>('GET', `${WEBHOOK}/deliveries`, { params, query: { status, cursor } }),
  ]);
  const { deliveries, next_cursor } = page.ok ? page.body : { deliveries: [], next_cursor: '' };
  const at = pathOf(visit);
  return show(visit, {
    title: endpoint.ok ? `Deliveries to “${endpoint.body.name}”` : 'Deliveries',
    section: 'Webhooks',
    refused: refused ?? (page.ok ? null : page),
    content: html`${notice !== null && html`<p class="said" role="status">${notice}</p>`}
    <form class="filter" method="get" action="${at}">
      ${select('State', 'status', [['', 'All'], ...STATES.map((state) => [state, state] as const)], status)}
      <button class="quiet">Show</button></form>
    ${tableOr(
      nothingYet(
        'No deliveries here',
        html`They appear as events happen. <a href="/dashboard/webhooks/${params.webhook_id}">Send a test</a> to see one.`,
      ),
      'Deliveries, the newest first',
      ['Queued', 'Event', 'State', 'Attempts', 'Last attempt', 'Reply', 'Next attempt'],
      deliveries.map((delivery) => [
        html`<a href="${at}/${delivery.id}">${visit.time(delivery.created_at)}</a>`,
        delivery.type,
        stateOf(delivery),
        count(delivery.attempts),
        visit.time(delivery.last_attempt_at),
        answerOf(delivery),
        visit.time(delivery.next_attempt_at, '–'),
      ]),
    )}
    ${next_cursor !== '' && html`<p><a class="button quiet" href="${at}?${new URLSearchParams({ status, cursor: next_cursor }).toString()}">Older deliveries</a></p>`}
    ${endpoint.ok && endpoint.body.deliveries.failed > 0 && endpoint.body.deleted_at === null && retryForm(visit, endpoint.body)}
    <p><a href="/dashboard/webhooks/${params.webhook_id}">The endpoint</a></p>`,
  });
}

const retryForm = (visit: Visit, { deliveries }: WebhookBody) =>
  html`<section><h2>Retry what has failed</h2>${form(
    visit,
    `${pathOf(visit)}/retry`,
    html`<p>${counted(deliveries.failed, 'failed delivery', 'failed deliveries')}. Each is attempted anew, as often as a new one.</p>
    ${field('Queued since', 'since', { type: 'date', value: textOf(visit, 'since'), required: true, hint: 'A UTC day.' })}
    <button>Retry all failed</button>`,
  )}</section>`;

const TONES = {
  pending: 'wait',
  delivered: 'good',
  failed: 'bad',
  cancelled: 'off',
  expired: 'off',
} as const;
const stateOf = ({ state }: DeliveryBody) => badge(state, TONES[state]);

const answerOf = ({ http_status, error }: DeliveryBody): string =>
  [http_status === null ? '' : `HTTP ${http_status}`, error === 'http_status' ? '' : (error ?? '')]
    .filter((text) => text !== '')
    .join(', ') || '–';

async function retryAll({ retryFailedSince }: DeliveryDeps, visit: Visit): Promise<Reply> {
  const day = textOf(visit, 'since');
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day) || Number.isNaN(Date.parse(day))) {
    return history(visit, { ok: false, status: 400, code: 'invalid_date', message: 'Choose a day.' });
  }
  const { webhook_id } = endpointOf(visit);
  const { retried, all, refused } = await retryFailedSince(visit, webhook_id, day);
  const notice = `${counted(retried, 'delivery is', 'deliveries are')} being attempted anew.`;
  const rest = all ? 'None that failed since then is left.' : 'More are left: repeat it to go on.';
  return history(
    visit,
    refused,
    retried > 0 || refused === null ? `${notice} ${refused === null ? rest : ''}` : null,
  );
}

async function one(visit: Visit, refused: Refused = null): Promise<Reply> {
  const params = { ...endpointOf(visit), delivery_id: visit.request.params.delivery_id ?? '' };
  const found = await visit.api<DeliveryBody & { readonly event: unknown }>('GET', DELIVERY, { params });
  if (!found.ok) return history(visit, found);
  const { event, ...delivery } = found.body;
  const at = pathOf(visit);
  return show(visit, {
    title: 'Delivery',
    section: 'Webhooks',
    refused,
    showsCountry: true,
    content: html`${facts([
      ['State', stateOf(delivery)],
      ['Event', html`${delivery.type} <code>${delivery.event_id}</code>`],
      ['Queued', visit.time(delivery.created_at)],
      ['Attempts', count(delivery.attempts)],
      ['Last attempt', visit.time(delivery.last_attempt_at)],
      ['Reply', answerOf(delivery)],
      ['Next attempt', visit.time(delivery.next_attempt_at, '–')],
      ['Delivered', visit.time(delivery.delivered_at, '–')],
    ])}
    ${
      delivery.state !== 'pending' &&
      delivery.state !== 'expired' &&
      delivery.state !== 'cancelled' &&
      form(
        visit,
        `${at}/${delivery.id}/retry`,
        html`<button>${delivery.state === 'failed' ? 'Retry' : 'Deliver once more'}</button>`,
      )
    }
    <section><h2>What is sent</h2>${
      event === null || event === undefined
        ? html`<p>The payload is no longer kept.</p>`
        : copyable('Body of the event', JSON.stringify(event, null, 2))
    }</section>
    <p><a href="${at}">All deliveries</a></p>`,
  });
}

async function retry(visit: Visit): Promise<Reply> {
  const delivery_id = visit.request.params.delivery_id ?? '';
  const params = { ...endpointOf(visit), delivery_id };
  const retried = await visit.api('POST', `${DELIVERY}/retry`, { params });
  if (!retried.ok) return one(visit, retried);
  return redirectAfterPost(`${pathOf(visit)}/${encodeURIComponent(delivery_id)}`, 'delivery-retried');
}
