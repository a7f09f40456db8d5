import type { Reply } from '../../../http/contract/route.ts';
import type { AttemptHour, EndpointHealth } from '../../../projections/webhooks/deliveries/health-readers.ts';
import type { DeliveryBody } from '../../../read-api/webhooks/delivery-schemas.ts';
import type {
  WebhookBody,
  WebhookLimits,
  WebhookWorker,
} from '../../../read-api/webhooks/endpoint-schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { type ApiAnswer, listTrackers, mayChange, type Refused, textOf, type Visit } from '../api.ts';
import {
  checkbox,
  count,
  counted,
  facts,
  field,
  form,
  html,
  namesOfTrackers,
  nothingYet,
  notice,
  OTHERS_ADD,
  pager,
  panel,
  select,
  tableOr,
  tiles,
  trackerSelect,
} from '../components.ts';
import { ask, show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';
import { attemptCharts, SPANS, type Span, startOf, stateBadge, stateDetail } from './webhook-health.ts';
import { rotationPages, secretPage, type WithSecret } from './webhook-secret.ts';
import { verificationSnippets } from './webhook-snippets.ts';

const PATH = '/dashboard/webhooks';
const EVENTS = [
  ['session.created', 'A session has begun'],
  ['reveal.completed', 'A reveal is complete'],
] as const;

/** What the pages of endpoints need beyond the API's routes. */
export interface WebhookDeps {
  /** null: all of the partner's endpoints that are not deleted. */
  readonly health: (visit: Visit, webhookId: string | null) => Promise<readonly EndpointHealth[]>;
  /** Attempts by hour from `since` on (milliseconds). */
  readonly attempts: (visit: Visit, webhookId: string, since: number) => Promise<readonly AttemptHour[]>;
  /** Sends a sample of an event, with made-up data, to one endpoint. */
  readonly sendSample: (
    visit: Visit,
    webhookId: string,
    type: DeliveryBody['type'],
  ) => Promise<ApiAnswer<{ readonly delivery_id: string }>>;
}

const WEBHOOK = '/v1/webhooks/:webhook_id';

/** The partner's webhook endpoints: all of them, one, and what can be done with it. */
export const webhookPages = (deps: WebhookDeps): PageRoute[] => [
  { method: 'GET', path: PATH, handle: (visit) => list(deps, visit) },
  { method: 'POST', path: PATH, needs: 'member', handle: (visit) => create(deps, visit) },
  { method: 'GET', path: `${PATH}/:webhook_id`, handle: (visit) => one(deps, visit) },
  { method: 'POST', path: `${PATH}/:webhook_id`, needs: 'member', handle: (visit) => change(deps, visit) },
  {
    method: 'POST',
    path: `${PATH}/:webhook_id/pause`,
    needs: 'member',
    handle: (visit) => enable(deps, visit, false),
  },
  {
    method: 'POST',
    path: `${PATH}/:webhook_id/enable`,
    needs: 'member',
    handle: (visit) => enable(deps, visit, true),
  },
  { method: 'POST', path: `${PATH}/:webhook_id/test`, needs: 'member', handle: (visit) => test(deps, visit) },
  {
    method: 'GET',
    path: `${PATH}/:webhook_id/delete`,
    needs: 'member',
    handle: (visit) => askDelete(deps, visit),
  },
  {
    method: 'POST',
    path: `${PATH}/:webhook_id/delete`,
    needs: 'member',
    handle: (visit) => remove(deps, visit),
  },
  ...rotationPages((visit, refused) => one(deps, visit, refused)),
];

interface WebhookList {
  readonly webhooks: readonly WebhookBody[];
  readonly limits: WebhookLimits;
  readonly worker: WebhookWorker;
}

async function list(deps: WebhookDeps, visit: Visit, refused: Refused = null): Promise<Reply> {
  const [listed, { trackers }, health] = await Promise.all([
    visit.api<WebhookList>('GET', '/v1/webhooks'),
    listTrackers(visit),
    deps.health(visit, null),
  ]);
  const webhooks = listed.ok ? listed.body.webhooks : [];
  const healthOf = new Map(health.map((one) => [one.webhook_id, one]));
  const chosen = refused === null ? EVENTS.map(([event]) => event as string) : visit.form.getAll('events');
  return show(visit, {
    title: 'Webhooks',
    section: 'Webhooks',
    refused: refused ?? (listed.ok ? null : listed),
    content: html`${listed.ok && listed.body.worker.status !== 'running' && slow(visit, listed.body.worker)}
    ${tableOr(
      nothingYet(
        'No endpoints yet',
        html`An endpoint is a URL of yours that gets a signed request for each new session or completed reveal.
          ${mayChange(visit) ? 'Create the first one below, then send it a test.' : OTHERS_ADD}`,
      ),
      'Endpoints',
      ['Name', 'State', 'URL', 'Events', 'Pending', 'Delivered', 'Failed'],
      webhooks.map((webhook) => {
        const its = healthOf.get(webhook.id);
        return [
          html`<a href="${PATH}/${webhook.id}">${webhook.name}</a>`,
          its && html`${stateBadge(its)} <small>${stateDetail(visit, its)}</small>`,
          html`<code>${webhook.url}</code>`,
          webhook.events.join(', '),
          count(webhook.deliveries.pending),
          count(webhook.deliveries.delivered),
          count(webhook.deliveries.failed),
        ];
      }),
      { numeric: [4, 5, 6] },
    )}
    ${
      listed.ok &&
      webhooks.length > 0 &&
      pager(
        `${counted(webhooks.length, 'endpoint')} of at most ${count(listed.body.limits.endpoints)}. Deliveries of the last 90 days.`,
        null,
      )
    }
    ${
      mayChange(visit) &&
      panel(
        'Create an endpoint',
        form(
          visit,
          PATH,
          html`${field('Name', 'name', { value: textOf(visit, 'name'), required: true, maxlength: 100 })}
          ${field('URL', 'url', { type: 'url', value: textOf(visit, 'url'), required: true, maxlength: 2048, hint: 'https on port 443. It cannot be changed later.' })}
          <fieldset><legend>Events</legend>${EVENTS.map(([event, text]) => checkbox(text, 'events', event, chosen.includes(event)))}</fieldset>
          ${trackerSelect(trackers, textOf(visit, 'tracker_id'), 'All websites')}
          <button>Create the endpoint</button>`,
        ),
      )
    }`,
  });
}

const slow = (visit: Visit, { last_seen_at, due }: WebhookWorker) =>
  notice(
    html`<p>Deliveries are not being sent just now: the service's worker was last seen ${visit.ago(last_seen_at)}, and
      ${counted(due, 'delivery is', 'deliveries are')} due. Nothing is lost. Ask whoever runs the service.</p>`,
  );

async function create(deps: WebhookDeps, visit: Visit): Promise<Reply> {
  const tracker = textOf(visit, 'tracker_id');
  const made = await visit.api<WithSecret>('POST', '/v1/webhooks', {
    body: {
      name: textOf(visit, 'name'),
      url: textOf(visit, 'url'),
      events: visit.form.getAll('events'),
      tracker_id: tracker === '' ? null : tracker,
    },
  });
  return made.ok ? secretPage(visit, made.body) : list(deps, visit, made);
}

const paramsOf = ({ request }: Visit) => ({ webhook_id: request.params.webhook_id ?? '' });
const pathOf = (visit: Visit): string => `${PATH}/${encodeURIComponent(paramsOf(visit).webhook_id)}`;

async function one(deps: WebhookDeps, visit: Visit, refused: Refused = null): Promise<Reply> {
  const found = await visit.api<WebhookBody>('GET', WEBHOOK, { params: paramsOf(visit) });
  if (!found.ok) return list(deps, visit, found);
  const webhook = found.body;
  const span: Span = visit.query.get('span') === 'week' ? 'week' : 'day';
  const since = startOf(span, visit.request.receivedAt);
  const [{ trackers }, [health], hours] = await Promise.all([
    listTrackers(visit),
    deps.health(visit, webhook.id),
    deps.attempts(visit, webhook.id, since),
  ]);
  const at = pathOf(visit);
  const isLive = webhook.deleted_at === null;
  const attention = health && isLive ? healthNotice(visit, health, webhook, at) : null;
  return show(visit, {
    title: webhook.name,
    section: 'Webhooks',
    refused,
    actions: html`<a class="button quiet" href="${at}/deliveries">Delivery history</a>`,
    content: html`${attention}
    ${facts([
      ['State', health && html`${stateBadge(health)} ${attention === null && stateDetail(visit, health)}`],
      ['URL', html`<code>${webhook.url}</code>`],
      ['Events', webhook.events.join(', ')],
      [
        'Website',
        webhook.tracker_id === null
          ? 'all'
          : html`<a href="/dashboard/trackers/${webhook.tracker_id}">${namesOfTrackers(trackers)(webhook.tracker_id)}</a>`,
      ],
      ['Created', visit.time(webhook.created_at)],
      ['Last attempt', visit.ago(health?.last_attempt_at ?? null)],
      ['Signing secret', secretState(visit, webhook, at)],
    ])}
    ${panel(
      'Attempts',
      html`<p>${Object.entries(SPANS).map(([name, { text }]) =>
        name === span
          ? html`<strong>${text}</strong> `
          : html`<a href="${at}${name === 'day' ? '' : `?span=${name}`}">${text}</a> `,
      )}</p>${attemptCharts(visit, span, hours)}`,
    )}
    <section><h2>Deliveries of the last 90 days</h2>
      ${tiles(
        Object.entries(webhook.deliveries).map(([state, n]) => ({
          name: state,
          value: count(n),
          href: `${at}/deliveries?status=${state}`,
        })),
      )}</section>
    ${isLive && mayChange(visit) && testPanel(visit, webhook, at)}
    ${panel(
      'Verify what arrives',
      html`<p>Your server checks with the signing secret that a delivery comes from here, over the raw bytes of the body,
        and that it is not older than five minutes. While a secret is rotated there are two signatures: one that fits is
        enough.</p>${verificationSnippets()}`,
    )}
    ${isLive && mayChange(visit) && manage(visit, webhook, at)}
    <p><a href="${PATH}">All endpoints</a></p>`,
  });
}

/** How many deliveries wait, and how many have failed. */
export function leftText({ pending, failed }: WebhookBody['deliveries']): string {
  const parts = [
    pending > 0 ? counted(pending, 'delivery waits', 'deliveries wait') : '',
    failed > 0 ? counted(failed, 'delivery has failed', 'deliveries have failed') : '',
  ];
  const said = parts.filter((part) => part !== '').join(', ');
  return said === '' ? 'Nothing waits.' : `${said}.`;
}

/** What an endpoint that fails needs, and how to go on after an outage. */
function healthNotice(visit: Visit, health: EndpointHealth, { deliveries }: WebhookBody, at: string) {
  const isFailing = health.state === 'held_back' || health.state === 'failing';
  if (!isFailing && deliveries.failed === 0) return null;
  const waiting = leftText(deliveries);
  const recover = mayChange(visit) && html` <a href="${at}/recover">Retry what failed or waits…</a>`;
  if (health.state === 'held_back') {
    return notice(
      html`<p><strong>${stateBadge(health)} ${stateDetail(visit, health)}.</strong> One delivery at a time tries the endpoint
        until it answers; then all go on by themselves. ${waiting} Mend the receiver first.${recover}</p>`,
      'bad',
    );
  }
  return notice(
    html`<p>${isFailing && html`<strong>${stateBadge(health)} ${stateDetail(visit, health)}.</strong> `}${waiting}${recover}</p>`,
  );
}

const secretState = (visit: Visit, { secret_rotation_until, deleted_at }: WebhookBody, at: string) =>
  secret_rotation_until === null
    ? deleted_at === null
      ? 'one secret signs'
      : 'none: deleted'
    : html`two secrets sign until ${visit.time(secret_rotation_until)}: <a href="${at}/rotate">steps of the rotation</a>`;

const SAMPLES = [
  ['webhook.test', 'webhook.test'],
  ['session.created', 'session.created (a sample)'],
  ['reveal.completed', 'reveal.completed (a sample)'],
] as const;

const testPanel = (visit: Visit, { enabled }: WebhookBody, at: string) =>
  panel(
    'Test',
    enabled
      ? form(
          visit,
          `${at}/test`,
          html`<p>Sends an event to this endpoint alone. Samples have made-up data: their session and receipt do not exist,
            nothing is billed, and their id begins with <code>evt_test_</code>.</p>
          ${select('Event', 'type', SAMPLES, '')}
          <button class="quiet">Send a test</button>`,
        )
      : html`<p>The endpoint is paused. Enable it to send a test.</p>`,
  );

const manage = (visit: Visit, webhook: WebhookBody, at: string) => html`
  <div class="columns">
  ${panel(
    'Change',
    form(
      visit,
      at,
      html`${field('Name', 'name', { value: webhook.name, required: true, maxlength: 100 })}
      <fieldset><legend>Events</legend>${EVENTS.map(([event, text]) => checkbox(text, 'events', event, webhook.events.includes(event)))}</fieldset>
      <button>Change the endpoint</button>`,
    ),
  )}
  ${panel(
    webhook.enabled ? 'Pause' : 'Enable',
    webhook.enabled
      ? form(
          visit,
          `${at}/pause`,
          html`<p>What is pending waits; events that happen meanwhile are not delivered later.</p>
          <button class="quiet">Pause the endpoint</button>`,
        )
      : form(
          visit,
          `${at}/enable`,
          html`<p>What waits is delivered; events that happened meanwhile are not.</p>
          <button>Enable the endpoint</button>`,
        ),
  )}
  </div>
  ${panel(
    'Rotate or delete',
    html`<p><a class="button quiet" href="${at}/rotate">Rotate the secret…</a>
    <a class="button danger" href="${at}/delete">Delete the endpoint…</a></p>`,
  )}`;

async function update(deps: WebhookDeps, visit: Visit, body: object, done: string): Promise<Reply> {
  const changed = await visit.api('PATCH', WEBHOOK, { params: paramsOf(visit), body });
  return changed.ok ? redirectAfterPost(pathOf(visit), done) : one(deps, visit, changed);
}

const enable = (deps: WebhookDeps, visit: Visit, enabled: boolean): Promise<Reply> =>
  update(deps, visit, { enabled }, enabled ? 'webhook-enabled' : 'webhook-paused');

function change(deps: WebhookDeps, visit: Visit): Promise<Reply> {
  const body = { name: textOf(visit, 'name'), events: visit.form.getAll('events') };
  return update(deps, visit, body, 'webhook-changed');
}

async function test(deps: WebhookDeps, visit: Visit): Promise<Reply> {
  const params = paramsOf(visit);
  const sample = SAMPLES.find(([type]) => type === textOf(visit, 'type'))?.[0] ?? 'webhook.test';
  const sent =
    sample === 'webhook.test'
      ? await visit.api<{ readonly delivery_id: string }>('POST', `${WEBHOOK}/test`, { params })
      : await deps.sendSample(visit, params.webhook_id, sample);
  if (!sent.ok) return one(deps, visit, sent);
  const next = textOf(visit, 'from') === 'rotation' ? 'rotate' : 'deliveries';
  return redirectAfterPost(`${pathOf(visit)}/${next}`, 'webhook-tested');
}

async function askDelete(deps: WebhookDeps, visit: Visit): Promise<Reply> {
  const found = await visit.api<WebhookBody>('GET', WEBHOOK, { params: paramsOf(visit) });
  if (!found.ok) return list(deps, visit, found);
  const { name, deliveries } = found.body;
  return ask(visit, {
    title: `Delete “${name}”?`,
    section: 'Webhooks',
    text: html`<p>${counted(deliveries.pending, 'pending delivery is', 'pending deliveries are')} cancelled, and nothing more is
        sent. The endpoint cannot be brought back; its history stays for 90 days.</p>`,
    action: `${pathOf(visit)}/delete`,
    button: 'Delete the endpoint',
    back: pathOf(visit),
  });
}

async function remove(deps: WebhookDeps, visit: Visit): Promise<Reply> {
  const removed = await visit.api('DELETE', WEBHOOK, { params: paramsOf(visit) });
  return removed.ok ? redirectAfterPost(PATH, 'webhook-deleted') : one(deps, visit, removed);
}
