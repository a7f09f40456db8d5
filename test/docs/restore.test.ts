import { randomUUID } from 'node:crypto';
import type { LightMyRequestResponse } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auditBilling } from '../../bin/audit-billing.ts';
import { CONSUMERS } from '../../bin/retention.ts';
import { signalsIntake } from '../../bin/signals.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import { createMetrics } from '../../platform/metrics.ts';
import { startOpsServer } from '../../platform/ops-server.ts';
import { allProjections } from '../../projections/all.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { backUp, type Files, KEPT, MADE_AGAIN, restore } from '../support/backup.ts';
import { logIn, makeUser, type TestUser } from '../support/dashboard.ts';
import { testDatabase } from '../support/database.ts';
import { domainsOf, SERVICE_HOST, startTestDns, type TestDns } from '../support/domains.ts';
import { doorplate, MASTER_KEY } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { aCompany, record, scriptedProvider } from '../support/providers.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { signal } from '../support/signals.ts';
import { collect, feed, makeTracker, PAGE } from '../support/tracking.ts';
import { verified } from '../support/webhook-sink.ts';

// The command has no clock but the machine's.
const clock = manualClock(Date.now());
const provider = scriptedProvider();
const HOSTNAME = 'visits.example.com';
const COMPANY = '5.9.0.1';
const ISP = '5.9.0.2';
const UNKNOWN = '5.9.0.3';
/** Its enrichment fails until a test says otherwise. */
const PENDING = '5.9.0.4';

let dns: TestDns;
let receiver: Receiver;
let env: Record<string, string>;
let first: TestApi;
let restored: TestApi;

let key: Key;
let other: Key;
let user: TestUser;
let tracker: string;
let domain: string;
let webhook: { id: string; signing_secret: string };
let down: { id: string };
const visit = { token: randomUUID(), visit_id: randomUUID() };
const IDEMPOTENCY_KEY = randomUUID();
let pendingReveal: string;
/** What is asked of both products. */
const urls: string[] = [];

const post = (api: TestApi, url: string, payload?: object, headers = {}) =>
  api.inject(key, { method: 'POST', url, headers, ...(payload && { payload }) });
const get = (api: TestApi, url: string, by: Key = key) => api.inject(by, { method: 'GET', url });
const reveal = async (api: TestApi, session: unknown, idempotencyKey: string = randomUUID()) =>
  (
    await post(api, `/v1/sessions/${session}/reveal`, undefined, { 'idempotency-key': idempotencyKey })
  ).json();
/** What the receiver was told, of all types or one. */
const received = (type?: string) =>
  receiver.requests.filter(({ body }) => type === undefined || JSON.parse(body.toString()).type === type);
const isOne = (some: readonly unknown[]) => some.length === 1;
const passed = async ({ foundation: { processed, store } }: TestApi) => {
  expect(await processed.reached(CONSUMERS.processors, await store.head(), 10_000)).toBe(true);
};
const settled = async (api: TestApi) => {
  await passed(api);
  await api.caughtUp();
};

/** Of an enabled key's lookup: on a busy machine its clues may come too late once. */
const isAvailable = (answer: LightMyRequestResponse) => answer.json().company_signals.status === 'available';
const answerTo = (api: TestApi, url: string): Promise<LightMyRequestResponse> =>
  url.includes(COMPANY)
    ? eventually('its clues are there', () => get(api, url, other), isAvailable)
    : get(api, url);

/** Status, the headers that say something of the answer, and the body byte for byte, less what is new each time. */
const NEW_EACH_TIME = /"(request_id|next_cursor)":"[^"]+"/g;
const answersOf = async (api: TestApi) => {
  const told = [];
  for (const url of urls) {
    const { statusCode, headers, body } = await answerTo(api, url);
    const shown = ['content-type', 'cache-control', 'etag', 'retry-after', 'location'].map((n) => headers[n]);
    told.push([url, statusCode, shown, body.replace(NEW_EACH_TIME, '"$1":"…"')]);
  }
  const onDomain = await api.inject(null, {
    method: 'GET',
    url: `/tracking/a.js?tracker_id=${tracker}`,
    headers: { host: HOSTNAME },
  });
  const { report } = await auditBilling(api.foundation, { partnerId: key.partner_id, patienceMs: 10_000 });
  return { told, script: [onDomain.statusCode, onDomain.body], report };
};

/** Everything that the product knows to do, once. */
const useIt = async (): Promise<void> => {
  provider.says(COMPANY, aCompany('Acme', { company: { name: 'Acme', website: 'https://www.acme.io' } }));
  provider.says(ISP, record({ match_type: 'isp', network: { is_isp: true } }));
  provider.says(PENDING, 'fails');
  key = await first.key();
  other = await first.key({ company_signals: true }, key.partner_id);
  user = await makeUser(first, key.partner_id);
  tracker = await makeTracker(first, key, { customer_reference: 'customer-42' });

  dns.says(HOSTNAME, [SERVICE_HOST]);
  const domains = domainsOf(first, key, tracker);
  domain = (await domains.claim(HOSTNAME)).json().id;
  await eventually(
    'the domain is active',
    () => domains.told(domain),
    ({ status }) => status === 'active',
  );

  const events = ['session.created', 'reveal.completed'];
  const endpoint = async (port: string | undefined) =>
    (await post(first, '/v1/webhooks', { name: 'r', url: `http://localhost:${port}/`, events })).json();
  const [up, closed] = env.WEBHOOK_ALLOW_PORTS?.split(',') ?? [];
  webhook = await endpoint(up);
  down = await endpoint(closed);

  for (const ip of [COMPANY, ISP, UNKNOWN, PENDING]) await first.post(key, ip);
  for (const ip of [COMPANY, ISP, UNKNOWN]) await first.settled(key, ip);
  const ops = await startOpsServer({
    host: '127.0.0.1',
    port: 0,
    registry: createMetrics().registry,
    readiness: () => ({ ready: true, problems: [] }),
    handlers: { 'POST /signals': signalsIntake(first.foundation) },
    log: { error: () => undefined },
  });
  const clue = signal(clock.now() - MINUTE, { ip: COMPANY });
  const sent = await fetch(`http://127.0.0.1:${ops.port}/signals`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ signals: [clue] }),
  });
  expect(sent.status).toBe(202);
  await ops.close();
  await eventually('the clue is told', () => get(first, `/v1/lookup?ip=${COMPANY}`, other), isAvailable);

  await collect(first, tracker, { ip: COMPANY, body: { ...visit, custom: { campaign: 'spring', n: 1 } } });
  await collect(first, tracker, { ip: UNKNOWN, headers: { host: HOSTNAME, origin: PAGE } });
  await collect(first, tracker, { ip: PENDING });
  const sessions = (await feed(first, key)).sessions.map(({ session_id }) => session_id);
  expect(sessions).toHaveLength(3);
  const reveals = [
    await reveal(first, sessions[0], IDEMPOTENCY_KEY),
    await reveal(first, sessions[1]),
    await reveal(first, sessions[2]),
  ];
  expect(reveals.map(({ status }) => status)).toEqual(['complete', 'complete', 'pending']);
  pendingReveal = reveals[2].reveal_id;
  await post(first, `/v1/webhooks/${webhook.id}/test`, {});
  const deliveries = async () =>
    (await get(first, `/v1/webhooks/${webhook.id}/deliveries`)).json().deliveries as {
      id: string;
      state: string;
    }[];
  const six = await eventually(
    'all is delivered',
    deliveries,
    (all) => all.length === 6 && all.every(({ state }) => state === 'delivered'),
  );
  const attempts = async () =>
    (await get(first, `/v1/webhooks/${down.id}/deliveries`)).json().deliveries as { attempts: number }[];
  await eventually(
    'all was tried',
    attempts,
    (all) => all.length === 5 && all.every((d) => d.attempts === 1),
  );
  await settled(first);

  // Those that count what is asked of them come first.
  urls.push(
    '/v1/usage',
    `/v1/trackers/${tracker}/usage`,
    '/v1/sessions',
    `/v1/sessions?tracker_id=${tracker}`,
  );
  urls.push('/v1/trackers', `/v1/trackers/${tracker}/domains`, `/v1/trackers/${tracker}/domains/${domain}`);
  urls.push(...sessions.map((id) => `/v1/sessions/${id}`));
  urls.push(...reveals.map(({ reveal_id }) => `/v1/reveals/${reveal_id}`));
  for (const { id } of [webhook, down]) urls.push(`/v1/webhooks/${id}`, `/v1/webhooks/${id}/deliveries`);
  urls.push('/v1/webhooks', `/v1/webhooks/${webhook.id}/deliveries?limit=2`);
  urls.push(...six.map(({ id }) => `/v1/webhooks/${webhook.id}/deliveries/${id}`));
  for (const ip of [COMPANY, ISP, UNKNOWN, PENDING, '5.9.0.5']) urls.push(`/v1/lookup?ip=${ip}`);
};

/** As the page says: a database with nothing in it, the program's own tables, the files, and all read models. */
const restoredFrom = async (files: Files): Promise<TestApi> => {
  const database = await testDatabase();
  const own = { DATABASE_URL: database.url, MASTER_KEY };
  const command = async (...args: string[]) => {
    const { code, stderr } = await doorplate(args, own);
    expect(code, stderr).toBe(0);
  };
  await command('projection', 'list');
  await restore(database.url, files);
  await command('store', 'new-epoch');
  await command('projection', 'rebuild', '--all');
  return startApi({ clock, providers: [provider], env, database });
};

/** After the backup, so that the log gives their positions out again. */
const LOST_VISITS = 5;
let cursorOfLost: string;
let before: Awaited<ReturnType<typeof answersOf>>;

beforeAll(async () => {
  dns = await startTestDns();
  receiver = await startReceiver();
  const ports = `${receiver.port},${await freePort()}`;
  env = {
    PUBLIC_URL: `http://${SERVICE_HOST}`,
    DNS_SERVERS: dns.address,
    // It polls the history until everything is delivered, which may take a while beside other tests.
    WEBHOOK_MANAGEMENT_PER_MINUTE: '100000',
    WEBHOOK_ALLOW_HTTP: '1',
    WEBHOOK_ALLOW_NETWORKS: '127.0.0.1/32,::1/128',
    WEBHOOK_ALLOW_PORTS: ports,
  };
  first = await startApi({ clock, providers: [provider], env });
  await useIt();
  const files = await backUp(first.foundation.databaseUrl);
  before = await answersOf(first);
  for (let n = 0; n < LOST_VISITS; n += 1) await collect(first, tracker, { ip: COMPANY });
  cursorOfLost = (await feed(first, key)).next_cursor;
  await settled(first);
  await first.close();
  restored = await restoredFrom(files);
}, 120_000);
afterAll(async () => {
  await restored?.close();
  await receiver?.close();
  dns?.close();
});

describe('docs/operations.md, on backups', () => {
  it('names every table that is no read model, as kept or as made again', async () => {
    const { rows } = await restored.sql.query(
      `select n.nspname || '.' || c.relname as table from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where c.relkind in ('r', 'p', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'`,
    );
    const models = [...allProjections.flatMap(({ tables }) => tables), 'projection'];
    const rebuilt = models.map((table) => `read.${table}`);
    expect([...KEPT, ...MADE_AGAIN, ...rebuilt].toSorted()).toEqual(
      rows.map(({ table }) => table).toSorted(),
    );
  });
});

describe('a product that was restored from what it says to keep', () => {
  it('answers as before', async () => {
    await settled(restored);
    await eventually('the domain was looked at', async () => {
      const { rows } = await restored.sql.query('select from work.domain_look where looked_at is not null');
      return rows.length === 1;
    });
    expect(before.told.map(([, status]) => status)).not.toContain(500);
    expect(await answersOf(restored)).toEqual(before);
  });

  it('lets users of the dashboard in with the passwords that they had, and nobody else', async () => {
    expect((await logIn(restored, user.name)).statusCode).toBe(303);
    expect((await logIn(restored, user.name, 'not the password')).statusCode).toBe(401);
  });

  it('shows new sessions to a partner whose cursor is later than the backup', async () => {
    const known = (await feed(restored, key)).sessions.length;
    const told = received('session.created').length;
    await collect(restored, tracker, { ip: UNKNOWN });
    const all = (await feed(restored, key)).sessions;
    expect(all).toHaveLength(known + 1);
    const { sessions, next_cursor } = await feed(restored, key, `cursor=${cursorOfLost}`);
    expect(sessions).toEqual(all.slice(known));
    expect((await feed(restored, key, `cursor=${next_cursor}`)).sessions).toEqual([]);
    await eventually('the receiver is told', () => received('session.created').slice(told), isOne);
  });

  it('does nothing twice, and knows what callers repeat', async () => {
    const told = received().length;
    const visits = (await feed(restored, key)).sessions;
    expect((await collect(restored, tracker, { ip: COMPANY, body: visit })).statusCode).toBe(204);
    const again = await reveal(restored, visits[0]?.session_id, IDEMPOTENCY_KEY);
    expect(again).toMatchObject({ status: 'complete', billable: true });
    expect(urls).toContain(`/v1/reveals/${again.reveal_id}`);
    await settled(restored);
    expect((await feed(restored, key)).sessions).toEqual(visits);
    expect(received()).toHaveLength(told);
  });

  it('goes on: what waited is completed, told with the secret of before, and billed in the same chain', async () => {
    const told = received('reveal.completed').length;
    provider.says(PENDING, aCompany('Late'));
    clock.advance(MINUTE);
    const events = await eventually('it is told', () => received('reveal.completed').slice(told), isOne);
    const [event] = events.map((request) => verified(request, webhook.signing_secret));
    expect(event?.data).toMatchObject({ reveal_id: pendingReveal, status: 'complete' });
    await settled(restored);
    const { report } = await answersOf(restored);
    expect(before.report).toMatchObject({ units: 1, differences: [] });
    expect(report).toMatchObject({ units: 2, differences: [] });
    await collect(restored, tracker, { ip: ISP });
    await settled(restored);
    expect((await feed(restored, key)).sessions).toHaveLength(5);
  });
});
