/** Values at the edge of what the service accepts, from everywhere that it takes values from. */
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sweepToEnd } from '../../bin/retention.ts';
import { DAY } from '../../domain/kernel/time.ts';
import { companySchema } from '../../domain/lookup/result.ts';
import { LARGEST_LIMIT } from '../../domain/partners/partner.ts';
import { closeTrackerDays } from '../../processors/usage/close-usage-streams.ts';
import { allProjections } from '../../projections/all.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { consumersCaughtUp, nothingStops } from '../support/consumers-caught-up.ts';
import { loggedIn, makeUser } from '../support/dashboard.ts';
import { domainsOf, SERVICE_HOST, startTestDns, type TestDns } from '../support/domains.ts';
import { eventually } from '../support/eventually.ts';
import { record, scriptedProvider } from '../support/providers.ts';
import { sendSignals, signal } from '../support/signals.ts';
import { collect, feed, makeTracker, PAGE } from '../support/tracking.ts';

const receiver = createServer((request, response) => {
  request.resume();
  const retryAfter = '9'.repeat(400);
  response.writeHead(Number(request.url?.slice(1)), { 'retry-after': retryAfter }).end();
});

const clock = manualClock();
let api: TestApi;
let dns: TestDns;
let key: Key;
const provider = scriptedProvider();
beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  dns = await startTestDns();
  api = await startApi({
    clock,
    providers: [provider, ...ofOneField],
    env: {
      PUBLIC_URL: `http://${SERVICE_HOST}`,
      DNS_SERVERS: dns.address,
      // It polls the history of deliveries.
      WEBHOOK_MANAGEMENT_PER_MINUTE: '100000',
      WEBHOOK_ALLOW_HTTP: '1',
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8',
      WEBHOOK_ALLOW_PORTS: String(port()),
    },
  });
  key = await api.key();
});
afterAll(async () => {
  await api.close();
  dns.close();
  receiver.closeAllConnections();
  receiver.close();
});
/** Providers of which each knows one field of a company. */
const LONG = '9.9.2.1';
const ofOneField = Object.keys(companySchema.shape).map((field) => {
  const one = scriptedProvider(`of ${field}`);
  one.says(LONG, record({ company: { [field]: 'x'.repeat(16_382) } }));
  return one;
});
const port = (): number => (receiver.address() as AddressInfo).port;

const WIDEST = '\u{10ffff}';
/** Grows when its case is folded, or when it is normalized. */
const GROWING = ['İ', 'ﷺ', '\u0390'];
const label = (length: number): string => 'a'.repeat(length);
const HOST = [label(63), label(63), label(63), label(61)].join('.');
const RANDOM = randomBytes(6_000).toString('base64');

it('keeps keys and users with the longest names, the largest limits, and the last expiries', async () => {
  for (const name of ['\u{2a6df}'.repeat(100), 'İ'.repeat(100)])
    await makeUser(api, key.partner_id, { name });
  const limits = { requests_per_second: LARGEST_LIMIT, pending_enrichments: LARGEST_LIMIT };
  const largest = await api.key({ ...limits, new_enrichments_per_day: LARGEST_LIMIT }, key.partner_id);
  expect((await api.usage(largest)).statusCode).toBe(200);
  const page = await loggedIn(api, await makeUser(api, key.partner_id));
  const form = { requests_per_second: '50', new_enrichments_per_day: '', pending_enrichments: '10000' };
  const expiries = ['9999-12-31T23:59', '9999-12-31T23:59:59.9999999999', '9996-02-29T00:00'];
  for (const expires_at of expiries) {
    const name = `${expires_at} ${WIDEST.repeat(60)}`;
    expect((await page.send('/keys', { ...form, name, expires_at })).statusCode, expires_at).toBe(201);
  }
  await nothingStops(api);
});

it('keeps the longest names, references, origins and labels of trackers, and their sessions', async () => {
  const tracker = async (payload: object) => {
    const made = await api.inject(key, { method: 'POST', url: '/v1/trackers', payload });
    expect(made.statusCode, made.body).toBe(201);
    return made.json().id as string;
  };
  for (const text of [WIDEST, ...GROWING]) {
    const all = text.repeat(200);
    await tracker({ name: all, customer_reference: all, origins: [PAGE] });
  }
  const origins = Array.from({ length: 50 }, (_, n) => `https://*.a${n + 10}${HOST.slice(3)}`);
  await tracker({ name: 'n', customer_reference: '\u0001\\u0000"', origins });
  const id = await makeTracker(api, key);
  const custom = [
    { l: WIDEST.repeat(500) },
    { l: '\\u0000' },
    { l: 1.7976931348623157e308 },
    { l: 5e-324 },
    { l: -0 },
  ];
  for (const one of custom) {
    const sent = await collect(api, id, { body: { custom: one } });
    expect(sent.statusCode, sent.body).toBe(204);
  }
  expect((await domainsOf(api, key, id).claim(HOST)).statusCode).toBe(201);
  await nothingStops(api);
});

it('keeps what providers answer, and reveals and delivers it', async () => {
  const tracker = await makeTracker(api, key);
  const webhook = async (path: string, name: string) => {
    const url = `http://127.0.0.1:${port()}/${path}`;
    const payload = { name, url, events: ['session.created', 'reveal.completed'], tracker_id: tracker };
    const made = await api.inject(key, { method: 'POST', url: '/v1/webhooks', payload });
    expect(made.statusCode, made.body).toBe(201);
    return made.json().id as string;
  };
  const webhooks = [await webhook('503', WIDEST.repeat(100)), await webhook('999', 'İ'.repeat(100))];
  const long = { name: RANDOM, brand_name: RANDOM, website: `https://${HOST}/` };
  const answers = [
    { match_type: 'company', company: long, fresh_for_days: 3_650 },
    { match_type: 'company', company: { name: 'İ'.repeat(3_000), website: 'https://www.example.com' } },
    { match_type: 'company', company: { name: 'A', employees: Number.MAX_SAFE_INTEGER, annual_revenue: -1 } },
    { match_type: 'isp', network: { connection_type: '\\u0000', audience_type: '', is_isp: true } },
    { company: { website: `http://${label(16_000)}` } },
  ];
  for (const [n, answer] of answers.entries()) {
    const ip = `9.9.1.${n}`;
    provider.says(ip, record(answer));
    expect((await api.post(key, ip)).statusCode).toBe(202);
    await api.settled(key, ip);
    await collect(api, tracker, { ip });
  }
  for (const { session_id } of (await feed(api, key, `tracker_id=${tracker}`)).sessions) {
    const url = `/v1/sessions/${session_id}/reveal`;
    const headers = { 'idempotency-key': randomUUID() };
    expect((await api.inject(key, { method: 'POST', url, headers })).statusCode).toBe(200);
  }
  for (const id of webhooks)
    await eventually('each delivery was attempted', async () => {
      const { deliveries } = (
        await api.inject(key, { method: 'GET', url: `/v1/webhooks/${id}/deliveries` })
      ).json();
      return (
        deliveries.length === 10 && deliveries.every(({ attempts }: { attempts: number }) => attempts > 0)
      );
    });
  await nothingStops(api);
});

it('keeps a result whose every field is as long as a provider may make it', async () => {
  const tracker = await makeTracker(api, key);
  const url = `http://127.0.0.1:${port()}/200`;
  const payload = { name: 'n', url, events: ['reveal.completed'], tracker_id: tracker };
  expect((await api.inject(key, { method: 'POST', url: '/v1/webhooks', payload })).statusCode).toBe(201);
  await api.post(key, LONG);
  const found = await api.settled(key, LONG);
  expect(Object.values(found.json().company).every((value) => String(value).length > 10_000)).toBe(true);
  await collect(api, tracker, { ip: LONG });
  const [session] = (await feed(api, key, `tracker_id=${tracker}`)).sessions;
  const revealed = await api.inject(key, {
    method: 'POST',
    url: `/v1/sessions/${session?.session_id}/reveal`,
    headers: { 'idempotency-key': randomUUID() },
  });
  expect(revealed.statusCode).toBe(200);
  await nothingStops(api);
});

it('keeps clues of the earliest and latest times and the longest names', async () => {
  const times = [
    '0000-01-01T00:00:00+23:59',
    '0000-01-01T00:00:00Z',
    ...Array<string>(998).fill('9999-12-31T23:59:59.999999-23:59'),
  ];
  const signals = times.map((occurred_at, n) =>
    signal(api.runtime.clock.now(), {
      occurred_at,
      // Each character takes two in JSON.
      event_id: `${'"'.repeat(125)}${n}`,
      email_domain: `${n}${HOST.slice(3)}`,
      site: HOST,
      installation_id: WIDEST.repeat(100),
      page_run_id: `${n}${'İ'.repeat(100)}`,
    }),
  );
  expect((await sendSignals(api, signals)).body).toEqual({ accepted: 1_000, duplicates: 0 });
  await nothingStops(api);
});

it('deletes all of it once it has expired, and rebuilds the rest', async () => {
  clock.advance(32 * DAY);
  const { store, databaseUrl: url } = api.runtime;
  await closeTrackerDays({ ...api.runtime, waitForHead: async () => true });
  await consumersCaughtUp(api);
  await sweepToEnd(api.runtime);
  await api.caughtUp();
  await rebuild({ store, url, projections: allProjections });
  await nothingStops(api);
  const { rows } = await api.sql.query(
    `select (select count(*) from read.session) + (select count(*) from read.reveal)
          + (select count(*) from read.webhook_payload) + (select count(*) from read.signal) as kept`,
  );
  expect(rows).toEqual([{ kept: '0' }]);
});
