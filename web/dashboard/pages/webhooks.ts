import { asUuid } from '../../../http/contract/parameters.ts';
import type { Reply } from '../../../http/contract/route.ts';
import type { ErrorCode } from '../../../http/errors/error-catalog.ts';
import {
  type EndpointHealth,
  listDeliveredDays,
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
import { sparkline } from '../charts.ts';
import * as ui from '../components.ts';
import { type Content, type Html, html } from '../components.ts';
import { type Page, show } from '../layout.ts';
import { picker } from '../pickers.ts';
import { action, type Done, type Resource, resourceRoutes, showOne } from '../resource.ts';
import { filled, get, type PageRoute, post } from '../routes.ts';
import { lastDays } from '../times.ts';
import { LINE_DAYS } from './trackers.ts';
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

const SETTINGS = { leadsTo: `${PATH}/:webhook_id/settings` };

const endpoints: Resource<WebhookBody> = {
  path: `${PATH}/:webhook_id`,
  find: ({ api }) => api<WebhookBody>('GET', WEBHOOK),
  missing: (page, why) => list(page, why),
  show: async (page, webhook, refused) =>
    refused === null
      ? show(page, endpointView(page, await loadEndpoint(page, webhook)))
      : settings(page, webhook, refused),
  actions: [
    action('', 'member', (page) => update(page, changesIn(page)), 'webhook-changed', SETTINGS),
    action('pause', 'member', (page) => update(page, { enabled: false }), 'webhook-paused', SETTINGS),
    action('enable', 'member', (page) => update(page, { enabled: true }), 'webhook-enabled', SETTINGS),
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
    text: html`<p>${ui.counted(deliveries.pending, 'pending delivery is', 'pending deliveries are')} cancelled, and nothing more is
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
  get(`${PATH}/new`, (page) => createPage(page), { needs: 'member' }),
  post(PATH, 'member', create),
  ...resourceRoutes(endpoints),
  get(`${endpoints.path}/testing`, (page) => showOne({ ...endpoints, show: testing }, page)),
  get(`${endpoints.path}/settings`, (page) => showOne({ ...endpoints, show: settings }, page), {
    needs: 'member',
  }),
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
  const [listed, health] = await Promise.all([
    page.api<WebhookList>('GET', '/v1/webhooks'),
    readHealthOf(page, null),
  ]);
  const webhooks = listed.ok ? listed.body.webhooks : [];
  return show(page, {
    title: 'Webhooks',
    section: 'Webhooks',
    refused: refused ?? (listed.ok ? null : listed),
    actions:
      mayChange(page) &&
      webhooks.length > 0 &&
      html`<a class="button" href="${PATH}/new">Add an endpoint</a>`,
    content: html`${listed.ok && listed.body.worker.status !== 'running' && workerNotice(page, listed.body.worker)}
    ${await endpointTable(page, webhooks, health)}
    ${
      listed.ok &&
      webhooks.length > 0 &&
      ui.pager(
        `${ui.counted(webhooks.length, 'endpoint')} of at most ${ui.count(listed.body.limits.endpoints)}.`,
        null,
      )
    }`,
  });
}

async function endpointTable(
  page: PageContext,
  webhooks: readonly WebhookBody[],
  health: readonly EndpointHealth[],
): Promise<Html> {
  const { reads, user, request } = page;
  const healthOf = new Map(health.map((one) => [one.webhook_id, one]));
  const days = lastDays(LINE_DAYS, request.receivedAt);
  const ids = webhooks.map(({ id }) => id);
  const rows = await listDeliveredDays(reads.db, user.partner_id, ids, Date.parse(days[0] ?? ''));
  const delivered = new Map(rows.map((row) => [`${row.webhook_id} ${row.day}`, row.delivered]));
  return ui.tableOr(
    ui.nothingYet(
      'No endpoints yet',
      html`An endpoint is a URL of yours that gets a signed request for each new session or completed reveal.
          ${!mayChange(page) && ui.OTHERS_ADD}`,
      mayChange(page) && html`<a class="button" href="${PATH}/new">Add an endpoint</a>`,
    ),
    'Endpoints',
    ['Endpoint', 'State', 'URL', 'Last 7 days', 'Last attempt', 'Pending', 'Failed'],
    webhooks.map((webhook) => {
      const its = healthOf.get(webhook.id);
      return [
        html`<a href="${PATH}/${webhook.id}">${webhook.name}</a>`,
        its && html`${stateBadge(its)} <small>${stateDetail(page, its)}</small>`,
        html`<code>${webhook.url}</code>`,
        sparkline(
          days.map((day) => delivered.get(`${webhook.id} ${day}`) ?? 0),
          'Delivered in the last 7 days',
        ),
        page.ago(its?.last_attempt_at ?? null),
        ui.count(webhook.deliveries.pending),
        ui.count(webhook.deliveries.failed),
      ];
    }),
    { numeric: [5, 6], minor: [2, 4], isWhole: true },
  );
}

async function createPage(page: PageContext, refused: Refused = null): Promise<Reply> {
  const { trackers } = await listTrackers(page);
  const chosen = refused === null ? EVENTS.map(([event]) => event as string) : page.form.getAll('events');
  return show(page, {
    title: 'Add an endpoint',
    section: 'Webhooks',
    up: [PATH, 'Webhooks'],
    refused,
    content: ui.panel(
      'The endpoint',
      ui.form(
        page,
        PATH,
        html`${ui.field('Name', 'name', { value: textOf(page, 'name'), required: true, maxlength: 100 })}
          ${ui.field('URL', 'url', { type: 'url', value: textOf(page, 'url'), required: true, maxlength: 2048, hint: 'https on port 443. It cannot be changed later.' })}
          ${eventBoxes(chosen)}
          ${ui.trackerSelect(trackers, textOf(page, 'tracker_id'), 'All websites')}
          <button>Add the endpoint</button>`,
      ),
    ),
  });
}

const eventBoxes = (chosen: readonly string[]): Html =>
  html`<fieldset><legend>Events</legend>${EVENTS.map(([event, text]) => ui.checkbox(text, 'events', event, chosen.includes(event)))}</fieldset>`;

const workerNotice = (page: PageContext, { last_seen_at, due }: WebhookWorker) =>
  ui.notice(
    html`<p>Deliveries are not being sent just now: the service's worker was last seen ${page.ago(last_seen_at)}, and
      ${ui.counted(due, 'delivery is', 'deliveries are')} due. Nothing is lost. Ask the operator of the service.</p>`,
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
  return made.ok ? secretPage(page, made.body) : createPage(page, made);
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
  return { webhook, span, health, hours, nameOf: ui.namesOfTrackers(trackers) };
}
type EndpointModel = Awaited<ReturnType<typeof loadEndpoint>>;

/** What the pages of one endpoint have in common. */
export function endpointHead(
  page: PageContext,
  { id, name, deleted_at }: WebhookBody,
  tab: '' | '/deliveries' | '/testing' | '/settings',
  health?: EndpointHealth,
) {
  const at = `${PATH}/${id}`;
  return {
    title: name,
    section: 'Webhooks' as const,
    up: [PATH, 'Webhooks'] as const,
    state: health && stateBadge(health),
    tabs: {
      pages: [
        [at, 'Overview'],
        [`${at}/deliveries`, 'Deliveries'],
        [`${at}/testing`, 'Testing'],
        ...(mayChange(page) && deleted_at === null ? [[`${at}/settings`, 'Settings'] as const] : []),
      ] as const,
      here: `${at}${tab}`,
    },
  };
}

function endpointView(page: PageContext, { webhook, span, health, hours, nameOf }: EndpointModel): Page {
  const at = pathOf(page);
  const isLive = webhook.deleted_at === null;
  const attention = health && isLive ? healthNotice(page, health, webhook, at) : null;
  return {
    ...endpointHead(page, webhook, '', health),
    pickers: picker(
      page,
      'Period',
      'span',
      Object.entries(SPANS).map(([name, { text }]) => [name === 'day' ? '' : name, text] as const),
      span === 'day' ? '' : span,
    ),
    content: html`${attention}
    ${health?.since && attention === null && ui.notice(html`<p>${stateBadge(health)} ${stateDetail(page, health)}</p>`)}
    ${attemptCharts(page, span, hours)}
    <h2>Deliveries of the last 90 days</h2>
    ${ui.tiles(
      Object.entries(webhook.deliveries).map(([state, n]) => ({
        name: `${state.charAt(0).toUpperCase()}${state.slice(1)}`,
        value: ui.count(n),
        href: `${at}/deliveries?status=${state}`,
      })),
    )}
    ${ui.facts([
      ['URL', html`<code>${webhook.url}</code>`],
      ['Events', webhook.events.join(', ')],
      ['Website', websiteOf(webhook, nameOf)],
      ['Last attempt', page.ago(health?.last_attempt_at ?? null)],
      ['Signing secret', secretState(page, webhook, at)],
      ['Added', page.time(webhook.created_at)],
    ])}`,
  };
}

const websiteOf = ({ tracker_id }: WebhookBody, nameOf: EndpointModel['nameOf']): Content =>
  tracker_id === null
    ? 'All websites'
    : html`<a href="/dashboard/trackers/${tracker_id}">${nameOf(tracker_id)}</a>`;

/** Says how many deliveries wait, and how many have failed. */
export function unfinishedText({ pending, failed }: WebhookBody['deliveries']): string {
  const parts = [
    pending > 0 ? ui.counted(pending, 'delivery waits', 'deliveries wait') : '',
    failed > 0 ? ui.counted(failed, 'delivery has failed', 'deliveries have failed') : '',
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
    return ui.notice(
      html`<p><strong>${stateBadge(health)} ${stateDetail(page, health)}.</strong> One delivery at a time tries the endpoint
        until it answers; then all go on by themselves. ${waiting} Fix the receiver first.${recover}</p>`,
      'bad',
    );
  }
  return ui.notice(
    html`<p>${isFailing && html`<strong>${stateBadge(health)} ${stateDetail(page, health)}.</strong> `}${waiting}${recover}</p>`,
  );
}

function secretState(page: PageContext, { secret_rotation_until, deleted_at }: WebhookBody, at: string) {
  if (secret_rotation_until !== null)
    return html`Two secrets sign until ${page.time(secret_rotation_until)}: <a href="${at}/rotate">steps of the rotation</a>`;
  if (deleted_at !== null) return 'None: deleted';
  return html`One secret signs${mayChange(page) && html`. <a href="${at}/rotate">Rotate the secret…</a>`}`;
}

const SAMPLES = [
  ['webhook.test', 'webhook.test'],
  ['session.created', 'session.created (a sample)'],
  ['reveal.completed', 'reveal.completed (a sample)'],
] as const;

async function testing(page: PageContext, webhook: WebhookBody, refused: Refused = null): Promise<Reply> {
  const [health] = await readHealthOf(page, webhook.id);
  return show(page, {
    ...endpointHead(page, webhook, '/testing', health),
    refused,
    content: html`${webhook.deleted_at === null && mayChange(page) && testPanel(page, webhook)}
    ${ui.panel(
      'Verify what arrives',
      html`<p>Your server checks with the signing secret that a delivery comes from here, over the raw bytes of the body,
        and that it is not older than five minutes. While a secret is rotated there are two signatures: one that fits is
        enough.</p>${verificationSnippets()}`,
    )}`,
  });
}

const testPanel = (page: PageContext, { enabled, id }: WebhookBody) =>
  ui.panel(
    'Send a test',
    enabled
      ? ui.form(
          page,
          `${PATH}/${id}/test`,
          html`<p>Sends an event to this endpoint alone. Samples have made-up data: their session and receipt do not exist,
            nothing is billed, and their id begins with <code>evt_test_</code>.</p>
          ${ui.select('Event', 'type', SAMPLES, '')}
          <button>Send a test</button>`,
        )
      : html`<p>The endpoint is paused. Enable it to send a test.</p>`,
  );

async function settings(page: PageContext, webhook: WebhookBody, refused: Refused = null): Promise<Reply> {
  const at = `${PATH}/${webhook.id}`;
  const [health] = await readHealthOf(page, webhook.id);
  return show(page, {
    ...endpointHead(page, webhook, '/settings', health),
    refused,
    content: html`${ui.panel(
      'Endpoint',
      ui.form(
        page,
        at,
        html`${ui.field('Name', 'name', { value: webhook.name, required: true, maxlength: 100 })}
      ${eventBoxes(webhook.events)}
      <button>Save</button>`,
      ),
    )}
  ${ui.panel(
    'Signing secret',
    html`<p>Rotate it if it may be known to others. For 24 hours the old one signs as well, so no delivery is lost.</p>
    <p><a class="button quiet" href="${at}/rotate">Rotate the secret…</a></p>`,
  )}
  ${ui.panel(
    webhook.enabled ? 'Pause' : 'Enable',
    webhook.enabled
      ? ui.form(
          page,
          `${at}/pause`,
          html`<p>Pending deliveries wait. Events that happen meanwhile are not delivered later.</p>
          <button class="quiet">Pause the endpoint</button>`,
        )
      : ui.form(
          page,
          `${at}/enable`,
          html`<p>What waits is delivered. Events that happened meanwhile are not.</p>
          <button>Enable the endpoint</button>`,
        ),
  )}
  <section class="panel danger"><h2>Delete</h2><p>Pending deliveries are cancelled, and the endpoint cannot be brought back.</p>
    <p><a class="button danger" href="${at}/delete">Delete the endpoint…</a></p></section>`,
  });
}

async function sendTest(sendSample: SendSample, page: PageContext): Promise<Reply> {
  const type = SAMPLES.find(([type]) => type === textOf(page, 'type'))?.[0] ?? 'webhook.test';
  const isRotation = textOf(page, 'from') === 'rotation';
  const sent =
    type === 'webhook.test' && !isRotation
      ? await page.api('POST', `${WEBHOOK}/test`)
      : await queueSample(sendSample, page, isRotation ? { newestSecretOnly: true } : { type });
  if (!sent.ok) return showOne({ ...endpoints, show: testing }, page, sent);
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
