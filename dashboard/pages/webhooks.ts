import type { Reply } from '../../http/contract/route.ts';
import type { TrackerBody } from '../../read-api/trackers/schemas.ts';
import type { WebhookBody, WebhookWorker } from '../../read-api/webhooks/endpoint-schemas.ts';
import {
  badge,
  checkbox,
  count,
  counted,
  field,
  form,
  nothingYet,
  secretOnce,
  select,
  table,
  time,
} from '../components.ts';
import { html } from '../html.ts';
import { show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';
import { type Refused, textOf, type Visit } from '../visit.ts';

export const PATH = '/dashboard/webhooks';
export const EVENTS = [
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
export type WithSecret = WebhookBody & { readonly signing_secret: string };

export const list = async (visit: Visit, refused: Refused = null): Promise<Reply> => {
  const [listed, trackers] = await Promise.all([
    visit.api<WebhookList>('GET', '/v1/webhooks'),
    visit.api<{ trackers: readonly TrackerBody[] }>('GET', '/v1/trackers'),
  ]);
  const webhooks = listed.ok ? listed.body.webhooks : [];
  const choices = trackers.ok ? trackers.body.trackers.map(({ id, name }) => [id, name] as const) : [];
  const chosen = refused === null ? EVENTS.map(([event]) => event as string) : visit.form.getAll('events');
  return show(visit, {
    title: 'Webhooks',
    section: 'Webhooks',
    refused: refused ?? (listed.ok ? null : listed),
    content: html`${listed.ok && listed.body.worker.status !== 'running' && slow(listed.body.worker)}
    ${
      webhooks.length === 0
        ? nothingYet(
            'No endpoints yet',
            'An endpoint is a URL of yours that is told of sessions and reveals as they happen. Create the first one below.',
          )
        : table(
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
          )
    }
    <section><h2>Create an endpoint</h2>${form(
      visit,
      PATH,
      html`${field('Name', 'name', { value: textOf(visit, 'name'), required: true, maxlength: 100 })}
      ${field('URL', 'url', { type: 'url', value: textOf(visit, 'url'), required: true, maxlength: 2048, hint: 'https on port 443. It cannot be changed later.' })}
      <fieldset><legend>Events</legend>${EVENTS.map(([event, text]) => checkbox(text, 'events', event, chosen.includes(event)))}</fieldset>
      ${select('Tracker', 'tracker_id', [['', 'All trackers'], ...choices], textOf(visit, 'tracker_id'))}
      <button>Create the endpoint</button>`,
    )}</section>`,
  });
};

export const stateOf = ({ enabled, deleted_at }: WebhookBody) => {
  if (deleted_at !== null) return badge('deleted', 'off');
  return enabled ? badge('enabled', 'good') : badge('paused', 'wait');
};

const slow = ({ last_seen_at, due }: WebhookWorker) =>
  html`<p class="notice">Deliveries are not being sent just now: the service's worker was last seen
    ${time(last_seen_at)}, and ${counted(due, 'delivery is', 'deliveries are')} due. Nothing is lost.</p>`;

const create = async (visit: Visit): Promise<Reply> => {
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
};

export const secretPage = (visit: Visit, title: string, { id, name, signing_secret }: WithSecret): Reply =>
  show(visit, {
    title,
    section: 'Webhooks',
    content: html`${secretOnce(`Signing secret of “${name}”`, signing_secret)}
      <p>Your server checks with it that a delivery is from here; <a href="/docs">the documentation</a> shows how.</p>
      <p><a class="button" href="${PATH}/${id}">I have kept it</a></p>`,
  });
