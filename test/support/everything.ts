/** Uses every feature of a product once and collects its answers: for tests of a restore and of an upgrade. */
import { randomUUID } from 'node:crypto';
import type { LightMyRequestResponse } from 'fastify';
import { expect } from 'vitest';
import { CONSUMERS } from '../../bin/groups.ts';
import { freePort } from '../../cli/installation/free-port.ts';
import { revokeKey } from '../../commands/partners/manage-partner.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import { auditBilling } from '../../processors/billing/audit.ts';
import type { Key, TestApi } from './api.ts';
import { loggedIn, makeUser, type TestUser } from './dashboard.ts';
import { domainsOf, SERVICE_HOST, startTestDns } from './domains.ts';
import { eventually } from './eventually.ts';
import { aCompany, record, scriptedProvider } from './providers.ts';
import { startReceiver } from './receiver.ts';
import { sendSignals, signal } from './signals.ts';
import { codeOf, collect, feed, makeTracker, PAGE } from './tracking.ts';

const HOSTNAME = 'visits.example.com';
export const COMPANY = '5.9.0.1';
export const ISP = '5.9.0.2';
export const UNKNOWN = '5.9.0.3';
/** Its enrichment fails until a test lets it succeed. */
export const PENDING = '5.9.0.4';
const NEVER_ASKED = '5.9.0.5';
const CAPPED = '5.9.0.6';

/** Starts the external servers: DNS, a webhook receiver and an enrichment provider. */
export const startSurroundings = async () => {
  const dns = await startTestDns();
  dns.says(HOSTNAME, [SERVICE_HOST]);
  const receiver = await startReceiver();
  const closedPort = await freePort();
  // A name that earlier releases had: their results count as asked of it.
  const provider = scriptedProvider('directory');
  provider.says(COMPANY, aCompany('Acme', { company: { name: 'Acme', website: 'https://www.acme.io' } }));
  provider.says(ISP, record({ match_type: 'isp', network: { is_isp: true } }));
  provider.says(PENDING, 'fails');
  return {
    provider,
    env: {
      PUBLIC_URL: `http://${SERVICE_HOST}`,
      DNS_SERVERS: dns.address,
      // The tests poll the delivery history, beside other tests for a while.
      WEBHOOK_MANAGEMENT_PER_MINUTE: '100000',
      WEBHOOK_ALLOW_HTTP: '1',
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.1/32,::1/128',
      WEBHOOK_ALLOW_PORTS: `${receiver.port},${closedPort}`,
    },
    /** Webhook URLs of the receiver, and of a port on which nothing listens. */
    webhookUrls: {
      receiver: `http://localhost:${receiver.port}/`,
      closed: `http://localhost:${closedPort}/`,
    },
    /** The events that the receiver got, of all types or of one. */
    received: (type?: string) =>
      receiver.requests.filter(({ body }) => type === undefined || JSON.parse(body.toString()).type === type),
    close: async () => {
      await receiver.close();
      dns.close();
    },
  };
};
export type Surroundings = Awaited<ReturnType<typeof startSurroundings>>;

/** The created objects: plain data, so that a fixture can hold it. */
export interface Everything {
  readonly key: Key;
  /** Of the same partner, with company signals. */
  readonly other: Key;
  /** Its daily allowance is one new enrichment, which is used up. */
  readonly capped: Key;
  readonly revoked: Key;
  readonly user: TestUser;
  readonly cookie: string;
  readonly tracker: string;
  readonly webhook: { readonly id: string; readonly signing_secret: string };
  readonly visit: { readonly token: string; readonly visit_id: string };
  readonly idempotencyKey: string;
  readonly pendingReveal: string;
  /** The requests that are compared before and after. */
  readonly urls: readonly string[];
}

const get = (api: TestApi, key: Key, url: string) => api.inject(key, { method: 'GET', url });
const post = (api: TestApi, key: Key, url: string, payload?: object, headers = {}) =>
  api.inject(key, { method: 'POST', url, headers, ...(payload && { payload }) });

export const reveal = async (
  api: TestApi,
  key: Key,
  session: unknown,
  idempotencyKey: string = randomUUID(),
) =>
  (
    await post(api, key, `/v1/sessions/${session}/reveal`, undefined, { 'idempotency-key': idempotencyKey })
  ).json();

/** Waits until processors and projections have handled the whole log. */
export const settled = async (api: TestApi): Promise<void> => {
  const { processed, store } = api.runtime;
  expect(await processed.reached(CONSUMERS.processors, await store.head(), 10_000)).toBe(true);
  await api.caughtUp();
};

/** On a busy machine a lookup of an enabled key may lack its signals once. */
const isAvailable = (answer: LightMyRequestResponse) => answer.json().company_signals.status === 'available';

const sendClue = async (api: TestApi): Promise<void> => {
  const sent = await sendSignals(api, [signal(api.runtime.clock.now() - MINUTE, { ip: COMPANY })]);
  expect(sent.status).toBe(202);
};

const claimDomain = async (api: TestApi, key: Key, tracker: string): Promise<string> => {
  const domains = domainsOf(api, key, tracker);
  const { id } = (await domains.claim(HOSTNAME)).json();
  await eventually(
    'the domain is active',
    () => domains.show(id),
    ({ status }) => status === 'active',
  );
  return id;
};

/** Three sessions, one of two visits, and a reveal of each; the last one waits for its enrichment. */
const revealVisits = async (api: TestApi, key: Key, tracker: string) => {
  const visit = { token: randomUUID(), visit_id: randomUUID() };
  const idempotencyKey = randomUUID();
  await collect(api, tracker, { ip: COMPANY, body: { ...visit, custom: { campaign: 'spring', n: 1 } } });
  await collect(api, tracker, { ip: COMPANY, body: { token: visit.token } });
  await collect(api, tracker, { ip: UNKNOWN, headers: { host: HOSTNAME, origin: PAGE } });
  await collect(api, tracker, { ip: PENDING });
  const sessions = (await feed(api, key)).sessions.map(({ session_id }) => session_id);
  expect(sessions).toHaveLength(3);
  const reveals = [
    await reveal(api, key, sessions[0], idempotencyKey),
    await reveal(api, key, sessions[1]),
    await reveal(api, key, sessions[2]),
  ];
  expect(reveals.map(({ status }) => status)).toEqual(['complete', 'complete', 'pending']);
  return { visit, idempotencyKey, sessions, reveals: reveals.map(({ reveal_id }) => reveal_id as string) };
};

/** A key at its daily cap, and one that was revoked. */
const spentKeys = async (api: TestApi, { partner_id }: Key) => {
  const capped = await api.key({ new_enrichments_per_day: 1 }, partner_id);
  await api.post(capped, CAPPED);
  await api.settled(capped, CAPPED);
  const revoked = await api.key({}, partner_id);
  const { store, clock } = api.runtime;
  const context = { correlationId: 'a test', causationId: 'a test', at: clock.now() };
  expect(await revokeKey(store, revoked, context)).toMatchObject({ ok: true });
  return { capped, revoked };
};

/** Objects that a partner creates and deletes. */
const deleteSome = async (api: TestApi, key: Key): Promise<void> => {
  const tracker = await makeTracker(api, key);
  const asked = { name: 'gone', url: 'https://example.com/', events: ['session.created'] };
  const { id } = (await post(api, key, '/v1/webhooks', asked)).json();
  for (const url of [`/v1/trackers/${tracker}`, `/v1/webhooks/${id}`]) {
    expect((await api.inject(key, { method: 'DELETE', url })).statusCode).toBeLessThan(300);
  }
};

interface ListedDelivery {
  readonly id: string;
  readonly state: string;
  readonly attempts: number;
}

/** Waits until `webhook` has delivered everything and `down` has failed once at each delivery. */
const deliverAll = async (api: TestApi, key: Key, webhook: string, down: string) => {
  const deliveriesOf = async (id: string): Promise<readonly ListedDelivery[]> =>
    (await get(api, key, `/v1/webhooks/${id}/deliveries`)).json().deliveries;
  const six = await eventually(
    'all is delivered',
    () => deliveriesOf(webhook),
    (all) => all.length === 6 && all.every(({ state }) => state === 'delivered'),
  );
  await eventually(
    'every delivery was attempted',
    () => deliveriesOf(down),
    (all) => all.length === 5 && all.every(({ attempts }) => attempts === 1),
  );
  return six;
};

export const useEverything = async (
  api: TestApi,
  around: Surroundings,
  partnersKey?: Key,
): Promise<Everything> => {
  const key = partnersKey ?? (await api.key());
  const other = await api.key({ company_signals: true }, key.partner_id);
  const spent = await spentKeys(api, key);
  const user = await makeUser(api, key.partner_id);
  const { cookie } = await loggedIn(api, user);
  await deleteSome(api, key);
  const tracker = await makeTracker(api, key, { customer_reference: 'customer-42' });
  const domain = await claimDomain(api, key, tracker);
  const events = ['session.created', 'reveal.completed'];
  const endpoint = async (url: string) =>
    (await post(api, key, '/v1/webhooks', { name: 'r', url, events })).json();
  const webhook = await endpoint(around.webhookUrls.receiver);
  const down = await endpoint(around.webhookUrls.closed);

  for (const ip of [COMPANY, ISP, UNKNOWN, PENDING]) await api.post(key, ip);
  for (const ip of [COMPANY, ISP, UNKNOWN]) await api.settled(key, ip);
  // Another partner waits for the same result.
  await api.post(await api.key(), PENDING);
  await sendClue(api);
  await eventually('the clue is shown', () => get(api, other, `/v1/lookup?ip=${COMPANY}`), isAvailable);
  const { sessions, reveals, ...visited } = await revealVisits(api, key, tracker);
  await post(api, key, `/v1/webhooks/${webhook.id}/test`, {});
  const delivered = await deliverAll(api, key, webhook.id, down.id);
  await settled(api);

  const urls = [
    // The counts come first, because the other requests change them.
    '/v1/usage',
    `/v1/trackers/${tracker}/usage`,
    '/v1/sessions',
    `/v1/sessions?tracker_id=${tracker}`,
    '/v1/trackers',
    `/v1/trackers/${tracker}/domains`,
    `/v1/trackers/${tracker}/domains/${domain}`,
    ...sessions.map((id) => `/v1/sessions/${id}`),
    ...reveals.map((id) => `/v1/reveals/${id}`),
    ...[webhook, down].flatMap(({ id }) => [`/v1/webhooks/${id}`, `/v1/webhooks/${id}/deliveries`]),
    '/v1/webhooks',
    `/v1/webhooks/${webhook.id}/deliveries?limit=2`,
    ...delivered.map(({ id }) => `/v1/webhooks/${webhook.id}/deliveries/${id}`),
    ...[COMPANY, ISP, UNKNOWN, PENDING, NEVER_ASKED].map((ip) => `/v1/lookup?ip=${ip}`),
  ];
  const pendingReveal = reveals.at(-1) as string;
  return { key, other, ...spent, user, cookie, tracker, webhook, pendingReveal, urls, ...visited };
};

const answerTo = (api: TestApi, { key, other }: Everything, url: string): Promise<LightMyRequestResponse> =>
  url.includes(COMPANY)
    ? eventually('its signals are available', () => get(api, other, url), isAvailable)
    : get(api, key, url);

/** Status, content headers and body byte for byte, without the values that are new in each response. */
const NEW_EACH_TIME = /"(request_id|next_cursor)":"[^"]+"/g;
const HEADERS = ['content-type', 'cache-control', 'etag', 'retry-after', 'location'];

export const answersOf = async (api: TestApi, used: Everything) => {
  const told = [];
  for (const url of used.urls) {
    const { statusCode, headers, body } = await answerTo(api, used, url);
    const shown = HEADERS.map((name) => headers[name] ?? null);
    told.push({ url, statusCode, shown, body: body.replace(NEW_EACH_TIME, '"$1":"…"') });
  }
  const onDomain = await api.inject(null, {
    method: 'GET',
    url: `/tracking/a.js?tracker_id=${used.tracker}`,
    headers: { host: HOSTNAME },
  });
  const refusals = [await api.post(used.capped, NEVER_ASKED), await api.post(used.revoked, COMPANY)];
  const audited = { partnerId: used.key.partner_id, patienceMs: 10_000 };
  const { report } = await auditBilling(api.runtime, audited);
  return {
    told,
    script: { statusCode: onDomain.statusCode, body: onDomain.body },
    refusals: refusals.map((answer) => [answer.statusCode, codeOf(answer)]),
    report,
  };
};
