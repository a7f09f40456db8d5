import type { Reply } from '../../http/contract/route.ts';
import type { DeliveryTotals, WebhookBody } from '../../read-api/webhooks/endpoint-schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import type { ApiAnswer } from '../api.ts';
import { checkbox, confirmation, count, facts, field, form, time } from '../components.ts';
import { html } from '../html.ts';
import { show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';
import { type Refused, textOf, type Visit } from '../visit.ts';
import { EVENTS, list, PATH, secretPage, stateOf, type WithSecret } from './webhooks.ts';

const WEBHOOK = '/v1/webhooks/:webhook_id';

export const webhookPages: readonly PageRoute[] = [
  { method: 'GET', path: `${PATH}/:webhook_id`, handle: (visit) => one(visit) },
  { method: 'POST', path: `${PATH}/:webhook_id`, handle: (visit) => update(visit) },
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
const find = (visit: Visit): Promise<ApiAnswer<WebhookBody>> =>
  visit.api('GET', WEBHOOK, { params: paramsOf(visit) });

const one = async (visit: Visit, refused: Refused = null): Promise<Reply> => {
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
      ['Created', time(webhook.created_at)],
      ['The secret before signs until', time(webhook.secret_rotation_until, '–')],
    ])}
    <section><h2>Deliveries of the last 90 days</h2>
      ${facts(Object.entries(webhook.deliveries satisfies DeliveryTotals).map(([state, n]) => [state, count(n)]))}
      <p><a class="button" href="${at}/deliveries">Delivery history</a></p></section>
    ${webhook.deleted_at === null && manage(visit, webhook, at)}
    <p><a href="${PATH}">All endpoints</a></p>`,
  });
};

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

const update = async (visit: Visit): Promise<Reply> => {
  const body = { name: textOf(visit, 'name'), events: visit.form.getAll('events') };
  const changed = await visit.api('PATCH', WEBHOOK, { params: paramsOf(visit), body });
  return changed.ok ? redirectAfterPost(pathOf(visit), 'webhook-changed') : one(visit, changed);
};

const enable = async (visit: Visit, enabled: boolean): Promise<Reply> => {
  const changed = await visit.api('PATCH', WEBHOOK, { params: paramsOf(visit), body: { enabled } });
  if (!changed.ok) return one(visit, changed);
  return redirectAfterPost(pathOf(visit), enabled ? 'webhook-enabled' : 'webhook-paused');
};

const test = async (visit: Visit): Promise<Reply> => {
  const sent = await visit.api('POST', `${WEBHOOK}/test`, { params: paramsOf(visit) });
  return sent.ok ? redirectAfterPost(`${pathOf(visit)}/deliveries`, 'webhook-tested') : one(visit, sent);
};

const askRotate = async (visit: Visit): Promise<Reply> => {
  const found = await find(visit);
  if (!found.ok) return list(visit, found);
  return show(visit, {
    title: `Rotate the secret of “${found.body.name}”?`,
    section: 'Webhooks',
    content: confirmation(visit, {
      text: html`<p>A new secret signs from now on. For 24 hours the one until now signs as well, so that your servers can
        change over.</p>`,
      action: `${pathOf(visit)}/rotate`,
      button: 'Rotate the secret',
      back: pathOf(visit),
    }),
  });
};

const rotate = async (visit: Visit): Promise<Reply> => {
  const rotated = await visit.api<WithSecret>('POST', `${WEBHOOK}/rotate-secret`, {
    params: paramsOf(visit),
  });
  return rotated.ok ? secretPage(visit, 'The new secret', rotated.body) : one(visit, rotated);
};

const askDelete = async (visit: Visit): Promise<Reply> => {
  const found = await find(visit);
  if (!found.ok) return list(visit, found);
  return show(visit, {
    title: `Delete “${found.body.name}”?`,
    section: 'Webhooks',
    content: confirmation(visit, {
      text: html`<p>What is pending (${count(found.body.deliveries.pending)}) is cancelled, and nothing more is sent. It
        cannot be brought back; its history stays for 90 days.</p>`,
      action: `${pathOf(visit)}/delete`,
      button: 'Delete the endpoint',
      back: pathOf(visit),
    }),
  });
};

const remove = async (visit: Visit): Promise<Reply> => {
  const removed = await visit.api('DELETE', WEBHOOK, { params: paramsOf(visit) });
  return removed.ok ? redirectAfterPost(PATH, 'webhook-deleted') : one(visit, removed);
};
