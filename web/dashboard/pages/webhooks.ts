import type { Reply } from '../../../http/contract/route.ts';
import type {
  DeliveryTotals,
  WebhookBody,
  WebhookWorker,
} from '../../../read-api/webhooks/endpoint-schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { listTrackers, type Refused, textOf, type Visit } from '../api.ts';
import {
  badge,
  checkbox,
  count,
  counted,
  facts,
  field,
  form,
  html,
  nothingYet,
  secretOnce,
  tableOr,
  trackerSelect,
} from '../components.ts';
import { ask, show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';

const PATH = '/dashboard/webhooks';
const EVENTS = [
  ['session.created', 'A session has begun'],
  ['reveal.completed', 'A reveal is complete'],
] as const;

/** The partner's webhook endpoints: all of them, and a new one. */
export const webhookListPages: readonly PageRoute[] = [
  { method: 'GET', path: PATH, handle: (visit) => list(visit) },
  { method: 'POST', path: PATH, handle: (visit) => create(visit) },
];

interface WebhookList {
  readonly webhooks: readonly WebhookBody[];
  readonly worker: WebhookWorker;
}
type WithSecret = WebhookBody & { readonly signing_secret: string };

async function list(visit: Visit, refused: Refused = null): Promise<Reply> {
  const [listed, { trackers }] = await Promise.all([
    visit.api<WebhookList>('GET', '/v1/webhooks'),
    listTrackers(visit),
  ]);
  const webhooks = listed.ok ? listed.body.webhooks : [];
  const chosen = refused === null ? EVENTS.map(([event]) => event as string) : visit.form.getAll('events');
  return show(visit, {
    title: 'Webhooks',
    section: 'Webhooks',
    refused: refused ?? (listed.ok ? null : listed),
    content: html`${listed.ok && listed.body.worker.status !== 'running' && slow(visit, listed.body.worker)}
    ${tableOr(
      nothingYet(
        'No endpoints yet',
        'An endpoint is a URL of yours that is told of sessions and reveals as they happen. Create the first one below.',
      ),
      'Endpoints',
      ['Name', 'State', 'URL', 'Events', 'Pending', 'Delivered', 'Failed'],
      webhooks.map((webhook) => [
        html`<a href="${PATH}/${webhook.id}">${webhook.name}</a>`,
        stateOf(webhook),
        html`<code>${webhook.url}</code>`,
        webhook.events.join(', '),
        count(webhook.deliveries.pending),
        count(webhook.deliveries.delivered),
        count(webhook.deliveries.failed),
      ]),
    )}
    <section><h2>Create an endpoint</h2>${form(
      visit,
      PATH,
      html`${field('Name', 'name', { value: textOf(visit, 'name'), required: true, maxlength: 100 })}
      ${field('URL', 'url', { type: 'url', value: textOf(visit, 'url'), required: true, maxlength: 2048, hint: 'https on port 443. It cannot be changed later.' })}
      <fieldset><legend>Events</legend>${EVENTS.map(([event, text]) => checkbox(text, 'events', event, chosen.includes(event)))}</fieldset>
      ${trackerSelect(trackers, textOf(visit, 'tracker_id'), 'All trackers')}
      <button>Create the endpoint</button>`,
    )}</section>`,
  });
}

function stateOf({ enabled, deleted_at }: WebhookBody) {
  if (deleted_at !== null) return badge('deleted', 'off');
  return enabled ? badge('enabled', 'good') : badge('paused', 'wait');
}

const slow = (visit: Visit, { last_seen_at, due }: WebhookWorker) =>
  html`<p class="notice">Deliveries are not being sent just now: the service's worker was last seen
    ${visit.time(last_seen_at)}, and ${counted(due, 'delivery is', 'deliveries are')} due. Nothing is lost.</p>`;

async function create(visit: Visit): Promise<Reply> {
  const tracker = textOf(visit, 'tracker_id');
  const made = await visit.api<WithSecret>('POST', '/v1/webhooks', {
    body: {
      name: textOf(visit, 'name'),
      url: textOf(visit, 'url'),
      events: visit.form.getAll('events'),
      tracker_id: tracker === '' ? null : tracker,
    },
  });
  return made.ok ? secretPage(visit, 'Your new endpoint', made.body) : list(visit, made);
}

const secretPage = (visit: Visit, title: string, { id, name, signing_secret }: WithSecret): Reply =>
  show(visit, {
    title,
    section: 'Webhooks',
    content: html`${secretOnce(`Signing secret of “${name}”`, signing_secret)}
      <p>Your server checks with it that a delivery is from here; <a href="/docs">the documentation</a> shows how.</p>
      <p><a class="button" href="${PATH}/${id}">I have kept it</a></p>`,
  });

const WEBHOOK = '/v1/webhooks/:webhook_id';

export const webhookPages: readonly PageRoute[] = [
  { method: 'GET', path: `${PATH}/:webhook_id`, handle: (visit) => one(visit) },
  { method: 'POST', path: `${PATH}/:webhook_id`, handle: (visit) => change(visit) },
  { method: 'POST', path: `${PATH}/:webhook_id/pause`, handle: (visit) => enable(visit, false) },
  { method: 'POST', path: `${PATH}/:webhook_id/enable`, handle: (visit) => enable(visit, true) },
  { method: 'POST', path: `${PATH}/:webhook_id/test`, handle: (visit) => test(visit) },
  { method: 'GET', path: `${PATH}/:webhook_id/rotate`, handle: (visit) => askRotate(visit) },
  { method: 'POST', path: `${PATH}/:webhook_id/rotate`, handle: (visit) => rotate(visit) },
  { method: 'GET', path: `${PATH}/:webhook_id/delete`, handle: (visit) => askDelete(visit) },
  { method: 'POST', path: `${PATH}/:webhook_id/delete`, handle: (visit) => remove(visit) },
];

const paramsOf = ({ request }: Visit) => ({ webhook_id: request.params.webhook_id ?? '' });
const pathOf = (visit: Visit): string => `${PATH}/${encodeURIComponent(paramsOf(visit).webhook_id)}`;
const find = (visit: Visit) => visit.api<WebhookBody>('GET', WEBHOOK, { params: paramsOf(visit) });

async function one(visit: Visit, refused: Refused = null): Promise<Reply> {
  const found = await find(visit);
  if (!found.ok) return list(visit, found);
  const webhook = found.body;
  const at = pathOf(visit);
  return show(visit, {
    title: webhook.name,
    section: 'Webhooks',
    refused,
    content: html`${facts([
      ['State', stateOf(webhook)],
      ['URL', html`<code>${webhook.url}</code>`],
      ['Events', webhook.events.join(', ')],
      [
        'Tracker',
        webhook.tracker_id === null
          ? 'all'
          : html`<a href="/dashboard/trackers/${webhook.tracker_id}"><code>${webhook.tracker_id}</code></a>`,
      ],
      ['Created', visit.time(webhook.created_at)],
      ['The secret before signs until', visit.time(webhook.secret_rotation_until, '–')],
    ])}
    <section><h2>Deliveries of the last 90 days</h2>
      ${facts(Object.entries(webhook.deliveries satisfies DeliveryTotals).map(([state, n]) => [state, count(n)]))}
      <p><a class="button" href="${at}/deliveries">Delivery history</a></p></section>
    ${webhook.deleted_at === null && manage(visit, webhook, at)}
    <p><a href="${PATH}">All endpoints</a></p>`,
  });
}

const manage = (visit: Visit, webhook: WebhookBody, at: string) => html`
  <section><h2>Test</h2>${form(
    visit,
    `${at}/test`,
    html`<p>Sends an event of type <code>webhook.test</code>.</p>
    <button class="quiet">Send a test</button>`,
  )}</section>
  <section><h2>Change</h2>${form(
    visit,
    at,
    html`${field('Name', 'name', { value: webhook.name, required: true, maxlength: 100 })}
    <fieldset><legend>Events</legend>${EVENTS.map(([event, text]) => checkbox(text, 'events', event, webhook.events.includes(event)))}</fieldset>
    <button>Change the endpoint</button>`,
  )}</section>
  <section><h2>${webhook.enabled ? 'Pause' : 'Enable'}</h2>${
    webhook.enabled
      ? form(
          visit,
          `${at}/pause`,
          html`<p>What is pending waits; new events are not queued for it.</p>
          <button class="danger">Pause the endpoint</button>`,
        )
      : form(visit, `${at}/enable`, html`<button>Enable the endpoint</button>`)
  }</section>
  <section><h2>Secret and end</h2><p>
    <a class="button danger" href="${at}/rotate">Rotate the secret…</a>
    <a class="button danger" href="${at}/delete">Delete the endpoint…</a></p></section>`;

async function update(visit: Visit, body: object, done: string): Promise<Reply> {
  const changed = await visit.api('PATCH', WEBHOOK, { params: paramsOf(visit), body });
  return changed.ok ? redirectAfterPost(pathOf(visit), done) : one(visit, changed);
}

const enable = (visit: Visit, enabled: boolean): Promise<Reply> =>
  update(visit, { enabled }, enabled ? 'webhook-enabled' : 'webhook-paused');

function change(visit: Visit): Promise<Reply> {
  const body = { name: textOf(visit, 'name'), events: visit.form.getAll('events') };
  return update(visit, body, 'webhook-changed');
}

async function test(visit: Visit): Promise<Reply> {
  const sent = await visit.api('POST', `${WEBHOOK}/test`, { params: paramsOf(visit) });
  return sent.ok ? redirectAfterPost(`${pathOf(visit)}/deliveries`, 'webhook-tested') : one(visit, sent);
}

async function askRotate(visit: Visit): Promise<Reply> {
  const found = await find(visit);
  if (!found.ok) return list(visit, found);
  return ask(visit, {
    title: `Rotate the secret of “${found.body.name}”?`,
    section: 'Webhooks',
    text: html`<p>A new secret signs from now on. For 24 hours the one until now signs as well, so that your servers can
        change over.</p>`,
    action: `${pathOf(visit)}/rotate`,
    button: 'Rotate the secret',
    back: pathOf(visit),
  });
}

async function rotate(visit: Visit): Promise<Reply> {
  const rotated = await visit.api<WithSecret>('POST', `${WEBHOOK}/rotate-secret`, {
    params: paramsOf(visit),
  });
  return rotated.ok ? secretPage(visit, 'The new secret', rotated.body) : one(visit, rotated);
}

async function askDelete(visit: Visit): Promise<Reply> {
  const found = await find(visit);
  if (!found.ok) return list(visit, found);
  return ask(visit, {
    title: `Delete “${found.body.name}”?`,
    section: 'Webhooks',
    text: html`<p>What is pending (${count(found.body.deliveries.pending)}) is cancelled, and nothing more is sent. It
        cannot be brought back; its history stays for 90 days.</p>`,
    action: `${pathOf(visit)}/delete`,
    button: 'Delete the endpoint',
    back: pathOf(visit),
  });
}

async function remove(visit: Visit): Promise<Reply> {
  const removed = await visit.api('DELETE', WEBHOOK, { params: paramsOf(visit) });
  return removed.ok ? redirectAfterPost(PATH, 'webhook-deleted') : one(visit, removed);
}
