import { asUuid } from '../../../http/contract/parameters.ts';
import type { Reply } from '../../../http/contract/route.ts';
import type { ErrorCode } from '../../../http/errors/error-catalog.ts';
import {
  type EndpointHealth,
  readAttempts,
} from '../../../projections/webhooks/deliveries/health-readers.ts';
import type { DeliveryBody } from '../../../read-api/webhooks/delivery-schemas.ts';
import type {
  WebhookBody,
  WebhookLimits,
  WebhookWorker,
} from '../../../read-api/webhooks/endpoint-schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import {
  commandOf,
  listTrackers,
  mayChange,
  type PageContext,
  type Refused,
  refusedWith,
  textOf,
} from '../api.ts';
import {
  type Content,
  checkbox,
  count,
  counted,
  facts,
  field,
  form,
  type Html,
  html,
  namesOfTrackers,
  nothingYet,
  notice,
  OTHERS_ADD,
  pager,
  panel,
  select,
  type Trackers,
  tableOr,
  tiles,
  trackerSelect,
} from '../components.ts';
import { type Page, show } from '../layout.ts';
import { action, type Done, type Resource, resourceRoutes, showOne } from '../resource.ts';
import { filled, get, type PageRoute, post } from '../routes.ts';
import {
  attemptCharts,
  readHealthOf,
  SPANS,
  type Span,
  startOf,
  stateBadge,
  stateDetail,
} from './webhook-health.ts';
import { rotationPages, secretPage, type WithSecret } from './webhook-secret.ts';
import { verificationSnippets } from './webhook-snippets.ts';

const PATH = '/dashboard/webhooks';
const EVENTS = [
  ['session.created', 'A session has begun'],
  ['reveal.completed', 'A reveal is complete'],
] as const;

/** Sends to one endpoint what the API has no route for: a sample of an event, with made-up data, or the test of a rotation. */
export type SendSample = (
  partnerId: string,
  webhookId: string,
  command: ReturnType<typeof commandOf>,
  options: { readonly type?: DeliveryBody['type']; readonly newestSecretOnly?: boolean },
) => Promise<{ readonly ok: true } | { readonly ok: false; readonly refusal: ErrorCode }>;

const WEBHOOK = '/v1/webhooks/:webhook_id';

const endpoints: Resource<WebhookBody> = {
  path: `${PATH}/:webhook_id`,
  find: ({ api }) => api<WebhookBody>('GET', WEBHOOK),
  missing: (page, why) => list(page, why),
  show: async (page, webhook, refused) =>
    show(page, { ...endpointView(page, await loadEndpoint(page, webhook)), refused }),
  actions: [
    action('', 'member', (page) => update(page, changesIn(page)), 'webhook-changed'),
    action('pause', 'member', (page) => update(page, { enabled: false }), 'webhook-paused'),
    action('enable', 'member', (page) => update(page, { enabled: true }), 'webhook-enabled'),
    action('delete', 'member', ({ api }) => api('DELETE', WEBHOOK), 'webhook-deleted', {
      ask: askDelete,
      leadsTo: PATH,
    }),
  ],
};

function askDelete(_page: PageContext, { name, deliveries }: WebhookBody) {
  return {
    title: `Delete “${name}”?`,
    section: 'Webhooks',
    text: html`<p>${counted(deliveries.pending, 'pending delivery is', 'pending deliveries are')} cancelled, and nothing more is
        sent. The endpoint cannot be brought back; its history stays for 90 days.</p>`,
    button: 'Delete the endpoint',
  } as const;
}

const changesIn = (page: PageContext) => ({
  name: textOf(page, 'name'),
  events: page.form.getAll('events'),
});

/** The partner's webhook endpoints: all of them, one, and what can be done with it. */
export const webhookPages = (sendSample: SendSample): PageRoute[] => [
  get(PATH, (page) => list(page)),
  post(PATH, 'member', create),
  ...resourceRoutes(endpoints),
  post(`${endpoints.path}/test`, 'member', (page) => sendTest(sendSample, page)),
  ...rotationPages(showEndpoint),
];

const showEndpoint = (page: PageContext, refused: Refused): Promise<Reply> =>
  showOne(endpoints, page, refused);

const update = ({ api }: PageContext, body: object): Promise<Done> => api('PATCH', WEBHOOK, { body });

interface WebhookList {
  readonly webhooks: readonly WebhookBody[];
  readonly limits: WebhookLimits;
  readonly worker: WebhookWorker;
}

async function list(page: PageContext, refused: Refused = null): Promise<Reply> {
  const [listed, { trackers }, health] = await Promise.all([
    page.api<WebhookList>('GET', '/v1/webhooks'),
    listTrackers(page),
    readHealthOf(page, null),
  ]);
  const webhooks = listed.ok ? listed.body.webhooks : [];
  return show(page, {
    title: 'Webhooks',
    section: 'Webhooks',
    refused: refused ?? (listed.ok ? null : listed),
    content: html`${listed.ok && listed.body.worker.status !== 'running' && workerNotice(page, listed.body.worker)}
    ${endpointTable(page, webhooks, health)}
    ${
      listed.ok &&
      webhooks.length > 0 &&
      pager(
        `${counted(webhooks.length, 'endpoint')} of at most ${count(listed.body.limits.endpoints)}. Deliveries of the last 90 days.`,
        null,
      )
    }
    ${mayChange(page) && createPanel(page, trackers, refused)}`,
  });
}

function endpointTable(
  page: PageContext,
  webhooks: readonly WebhookBody[],
  health: readonly EndpointHealth[],
): Html {
  const healthOf = new Map(health.map((one) => [one.webhook_id, one]));
  return tableOr(
    nothingYet(
      'No endpoints yet',
      html`An endpoint is a URL of yours that gets a signed request for each new session or completed reveal.
          ${mayChange(page) ? 'Create the first one below, then send it a test.' : OTHERS_ADD}`,
    ),
    'Endpoints',
    ['Name', 'State', 'URL', 'Events', 'Pending', 'Delivered', 'Failed'],
    webhooks.map((webhook) => {
      const its = healthOf.get(webhook.id);
      return [
        html`<a href="${PATH}/${webhook.id}">${webhook.name}</a>`,
        its && html`${stateBadge(its)} <small>${stateDetail(page, its)}</small>`,
        html`<code>${webhook.url}</code>`,
        webhook.events.join(', '),
        count(webhook.deliveries.pending),
        count(webhook.deliveries.delivered),
        count(webhook.deliveries.failed),
      ];
    }),
    { numeric: [4, 5, 6] },
  );
}

function createPanel(page: PageContext, trackers: Trackers, refused: Refused): Html {
  const chosen = refused === null ? EVENTS.map(([event]) => event as string) : page.form.getAll('events');
  return panel(
    'Create an endpoint',
    form(
      page,
      PATH,
      html`${field('Name', 'name', { value: textOf(page, 'name'), required: true, maxlength: 100 })}
          ${field('URL', 'url', { type: 'url', value: textOf(page, 'url'), required: true, maxlength: 2048, hint: 'https on port 443. It cannot be changed later.' })}
          ${eventBoxes(chosen)}
          ${trackerSelect(trackers, textOf(page, 'tracker_id'), 'All websites')}
          <button>Create the endpoint</button>`,
    ),
  );
}

const eventBoxes = (chosen: readonly string[]): Html =>
  html`<fieldset><legend>Events</legend>${EVENTS.map(([event, text]) => checkbox(text, 'events', event, chosen.includes(event)))}</fieldset>`;

const workerNotice = (page: PageContext, { last_seen_at, due }: WebhookWorker) =>
  notice(
    html`<p>Deliveries are not being sent just now: the service's worker was last seen ${page.ago(last_seen_at)}, and
      ${counted(due, 'delivery is', 'deliveries are')} due. Nothing is lost. Ask whoever runs the service.</p>`,
  );

async function create(page: PageContext): Promise<Reply> {
  const tracker = textOf(page, 'tracker_id');
  const made = await page.api<WithSecret>('POST', '/v1/webhooks', {
    body: {
      name: textOf(page, 'name'),
      url: textOf(page, 'url'),
      events: page.form.getAll('events'),
      tracker_id: tracker === '' ? null : tracker,
    },
  });
  return made.ok ? secretPage(page, made.body) : list(page, made);
}

const pathOf = ({ request }: PageContext): string => filled(endpoints.path, request.params);

async function loadEndpoint(page: PageContext, webhook: WebhookBody) {
  const { reads, user, query, request } = page;
  const span: Span = query.get('span') === 'week' ? 'week' : 'day';
  const [{ trackers }, [health], hours] = await Promise.all([
    listTrackers(page),
    readHealthOf(page, webhook.id),
    readAttempts(reads.db, user.partner_id, webhook.id, startOf(span, request.receivedAt)),
  ]);
  return { webhook, span, health, hours, nameOf: namesOfTrackers(trackers) };
}
type EndpointModel = Awaited<ReturnType<typeof loadEndpoint>>;

function endpointView(page: PageContext, { webhook, span, health, hours, nameOf }: EndpointModel): Page {
  const at = pathOf(page);
  const isLive = webhook.deleted_at === null;
  const attention = health && isLive ? healthNotice(page, health, webhook, at) : null;
  return {
    title: webhook.name,
    section: 'Webhooks',
    actions: html`<a class="button quiet" href="${at}/deliveries">Delivery history</a>`,
    content: html`${attention}
    ${facts([
      ['State', health && html`${stateBadge(health)} ${attention === null && stateDetail(page, health)}`],
      ['URL', html`<code>${webhook.url}</code>`],
      ['Events', webhook.events.join(', ')],
      ['Website', websiteOf(webhook, nameOf)],
      ['Created', page.time(webhook.created_at)],
      ['Last attempt', page.ago(health?.last_attempt_at ?? null)],
      ['Signing secret', secretState(page, webhook, at)],
    ])}
    ${panel('Attempts', html`<p>${spanLinks(span, at)}</p>${attemptCharts(page, span, hours)}`)}
    <section><h2>Deliveries of the last 90 days</h2>
      ${tiles(
        Object.entries(webhook.deliveries).map(([state, n]) => ({
          name: state,
          value: count(n),
          href: `${at}/deliveries?status=${state}`,
        })),
      )}</section>
    ${isLive && mayChange(page) && testPanel(page, webhook, at)}
    ${panel(
      'Verify what arrives',
      html`<p>Your server checks with the signing secret that a delivery comes from here, over the raw bytes of the body,
        and that it is not older than five minutes. While a secret is rotated there are two signatures: one that fits is
        enough.</p>${verificationSnippets()}`,
    )}
    ${isLive && mayChange(page) && changePanels(page, webhook, at)}
    <p><a href="${PATH}">All endpoints</a></p>`,
  };
}

const websiteOf = ({ tracker_id }: WebhookBody, nameOf: EndpointModel['nameOf']): Content =>
  tracker_id === null ? 'all' : html`<a href="/dashboard/trackers/${tracker_id}">${nameOf(tracker_id)}</a>`;

const spanLinks = (span: Span, at: string): Content =>
  Object.entries(SPANS).map(([name, { text }]) =>
    name === span
      ? html`<strong>${text}</strong> `
      : html`<a href="${at}${name === 'day' ? '' : `?span=${name}`}">${text}</a> `,
  );

/** Says how many deliveries wait, and how many have failed. */
export function unfinishedText({ pending, failed }: WebhookBody['deliveries']): string {
  const parts = [
    pending > 0 ? counted(pending, 'delivery waits', 'deliveries wait') : '',
    failed > 0 ? counted(failed, 'delivery has failed', 'deliveries have failed') : '',
  ];
  const text = parts.filter((part) => part !== '').join(', ');
  return text === '' ? 'Nothing waits.' : `${text}.`;
}

/** Says what is wrong with an endpoint that fails or has failed deliveries, and links to their retry; null: nothing is wrong. */
function healthNotice(page: PageContext, health: EndpointHealth, { deliveries }: WebhookBody, at: string) {
  const isFailing = health.state === 'held_back' || health.state === 'failing';
  if (!isFailing && deliveries.failed === 0) return null;
  const waiting = unfinishedText(deliveries);
  const recover = mayChange(page) && html` <a href="${at}/recover">Retry what failed or waits…</a>`;
  if (health.state === 'held_back') {
    return notice(
      html`<p><strong>${stateBadge(health)} ${stateDetail(page, health)}.</strong> One delivery at a time tries the endpoint
        until it answers; then all go on by themselves. ${waiting} Mend the receiver first.${recover}</p>`,
      'bad',
    );
  }
  return notice(
    html`<p>${isFailing && html`<strong>${stateBadge(health)} ${stateDetail(page, health)}.</strong> `}${waiting}${recover}</p>`,
  );
}

function secretState(page: PageContext, { secret_rotation_until, deleted_at }: WebhookBody, at: string) {
  if (secret_rotation_until !== null)
    return html`two secrets sign until ${page.time(secret_rotation_until)}: <a href="${at}/rotate">steps of the rotation</a>`;
  return deleted_at === null ? 'one secret signs' : 'none: deleted';
}

const SAMPLES = [
  ['webhook.test', 'webhook.test'],
  ['session.created', 'session.created (a sample)'],
  ['reveal.completed', 'reveal.completed (a sample)'],
] as const;

const testPanel = (page: PageContext, { enabled }: WebhookBody, at: string) =>
  panel(
    'Test',
    enabled
      ? form(
          page,
          `${at}/test`,
          html`<p>Sends an event to this endpoint alone. Samples have made-up data: their session and receipt do not exist,
            nothing is billed, and their id begins with <code>evt_test_</code>.</p>
          ${select('Event', 'type', SAMPLES, '')}
          <button class="quiet">Send a test</button>`,
        )
      : html`<p>The endpoint is paused. Enable it to send a test.</p>`,
  );

const changePanels = (page: PageContext, webhook: WebhookBody, at: string) => html`
  <div class="columns">
  ${panel(
    'Change',
    form(
      page,
      at,
      html`${field('Name', 'name', { value: webhook.name, required: true, maxlength: 100 })}
      ${eventBoxes(webhook.events)}
      <button>Change the endpoint</button>`,
    ),
  )}
  ${panel(
    webhook.enabled ? 'Pause' : 'Enable',
    webhook.enabled
      ? form(
          page,
          `${at}/pause`,
          html`<p>What is pending waits; events that happen meanwhile are not delivered later.</p>
          <button class="quiet">Pause the endpoint</button>`,
        )
      : form(
          page,
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

async function sendTest(sendSample: SendSample, page: PageContext): Promise<Reply> {
  const type = SAMPLES.find(([type]) => type === textOf(page, 'type'))?.[0] ?? 'webhook.test';
  const isRotation = textOf(page, 'from') === 'rotation';
  const sent =
    type === 'webhook.test' && !isRotation
      ? await page.api('POST', `${WEBHOOK}/test`)
      : await queueSample(sendSample, page, isRotation ? { newestSecretOnly: true } : { type });
  if (!sent.ok) return showEndpoint(page, sent);
  return redirectAfterPost(`${pathOf(page)}/${isRotation ? 'rotate' : 'deliveries'}`, 'webhook-tested');
}

async function queueSample(
  sendSample: SendSample,
  page: PageContext,
  options: Parameters<SendSample>[3],
): Promise<Done> {
  const { request, user } = page;
  const id = asUuid(request.params.webhook_id);
  if (id === null) return refusedWith(request, 'webhook_not_found');
  const sent = await sendSample(user.partner_id, id, commandOf(page), options);
  return sent.ok ? sent : refusedWith(request, sent.refusal);
}
