import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE } from '../../domain/kernel/time.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { browse, type LoggedIn, loggedIn, makeUser } from '../support/dashboard.ts';
import { doorplateHere, MASTER_KEY } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { codeOf, collect, feed, makeTracker, PAGE } from '../support/tracking.ts';
import { type AllowedReceivers, allowReceivers } from '../support/webhook-sink.ts';

const VISITOR = '5.9.0.1';
// The command has the system's.
const clock = manualClock(Date.now());
const provider = scriptedProvider();
let isDown = true;
let receiver: Receiver;
let allowed: AllowedReceivers;
let api: TestApi;
let key: Key;
let tracker: string;
let session: string;
let owner: LoggedIn;

const ports = async () => {
  const probe = await startReceiver();
  await probe.close();
  return probe.port;
};

beforeAll(async () => {
  const port = await ports();
  allowed = await allowReceivers([port]);
  receiver = await startReceiver({
    tls: allowed.tls,
    port,
    answer: (_request, response) => void response.writeHead(isDown ? 503 : 204).end(),
  });
  api = await startApi({ clock, providers: [provider], env: allowed.env });
  provider.says(VISITOR, 'fails');
  key = await api.key();
  tracker = await makeTracker(api, key);
  await endpoint(key, 'suspended');
  owner = await loggedIn(api, await makeUser(api, key.partner_id));
  await collect(api, tracker, { ip: VISITOR });
  session = (await feed(api, key)).sessions.at(-1)?.session_id as string;
  await eventually(
    'the delivery has failed once',
    () => attempts('session.created'),
    (n) => n === 1,
  );
});
afterAll(async () => {
  await api.close();
  await receiver.close();
  allowed.remove();
});

const endpoint = async (of: Key, path: string) => {
  const payload = {
    name: path,
    url: `https://127.0.0.1:${receiver.port}/${path}`,
    events: ['session.created', 'reveal.completed'],
  };
  const made = await api.inject(of, { method: 'POST', url: '/v1/webhooks', payload });
  expect(made.statusCode, made.body).toBe(201);
};
const attempts = async (type: string, partner = key.partner_id): Promise<number> => {
  const { rows } = await api.sql.query(
    'select attempts from read.webhook_delivery where partner_id = $1 and type = $2',
    [partner, type],
  );
  return rows[0]?.attempts ?? 0;
};
const sent = () => receiver.requests.filter(({ path }) => path === '/suspended').length;
const units = async () =>
  (
    await api.sql.query('select units from read.reveal_unit where partner_id = $1', [key.partner_id])
  ).rows.map(({ units }) => units);
const partner = async (...args: string[]) => {
  const { DATABASE_URL, DATA_DIR } = api.runtime.config;
  const env = { DATABASE_URL: DATABASE_URL ?? '', DATA_DIR, MASTER_KEY, LOG_LEVEL: 'silent' };
  const ended = await doorplateHere(['partner', ...args, '--json'], env);
  expect(ended.code, ended.stderr).toBe(0);
  return JSON.parse(ended.stdout);
};
const preflight = () =>
  api.app.inject({
    method: 'OPTIONS',
    url: '/tracking/collect',
    headers: { host: 'doorplate.test', origin: PAGE, 'access-control-request-method': 'POST' },
  });
const masked = (text: string) => text.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '');

describe('a suspended partner', () => {
  let revealId: string;
  let asked: number;

  beforeAll(async () => {
    const answer = await api.inject(key, {
      method: 'POST',
      url: `/v1/sessions/${session}/reveal`,
      headers: { 'idempotency-key': randomUUID() },
    });
    expect(answer.json()).toMatchObject({ status: 'pending' });
    revealId = answer.json().reveal_id;
    await eventually('the provider has failed', () => provider.asked(VISITOR));
    const suspended = { partner_id: key.partner_id, state: 'suspended' };
    expect(await partner('suspend', key.partner_id)).toMatchObject(suspended);
    expect(await partner('suspend', key.partner_id)).toMatchObject(suspended);
    await api.caughtUp();
    asked = sent();
    isDown = false;
  });

  it('has its keys refused as revoked ones are, within a second', async () => {
    const revoked = await api.key();
    await api.sql.query('update read.api_key set revoked_at = now() where key_id = $1', [revoked.key_id]);
    const [one, other] = await Promise.all(
      [key, revoked].map((of) =>
        eventually(
          'the key is refused',
          () => api.get(of, '8.8.8.8'),
          (answer) => answer.statusCode === 401,
          1_000,
        ),
      ),
    );
    expect(masked(one?.body ?? '')).toBe(masked(other?.body ?? 'other'));
    expect(Object.keys(one?.headers ?? {})).toEqual(Object.keys(other?.headers ?? {}));
  });

  it('has its pixels refused as those of a disabled tracker, within a second', async () => {
    const refused = await eventually(
      'the pixel is refused',
      () => collect(api, tracker),
      (answer) => answer.statusCode === 403,
      1_000,
    );
    expect(codeOf(refused)).toBe('tracker_origin_denied');
    const allows = (await preflight()).headers['access-control-allow-origin'];
    expect(allows).toBeUndefined();
  });

  it('gets no delivery and no completed reveal, and has no unit', async () => {
    provider.says(VISITOR, aCompany('Acme'));
    const other = await api.key();
    await endpoint(other, 'active');
    const site = await makeTracker(api, other, { origins: ['https://other.example'] });
    clock.advance(10 * MINUTE);
    await collect(api, site, { ip: VISITOR, headers: { origin: 'https://other.example' } });
    // Both are due, and the runs that complete reveals have passed the result.
    await eventually('the other partner’s delivery', () => attempts('session.created', other.partner_id));
    await eventually('the result is there', async () => (await ready()).length === 1);
    const page = await owner.get(`/reveals/${revealId}`);
    expect(page.statusCode).toBe(200);
    expect(page.body).toContain('pending');
    expect(await units()).toEqual([]);
    expect(sent()).toBe(asked);
  });

  it('has users who read everything, and change and reveal nothing', async () => {
    for (const path of ['', '/sessions', '/keys', '/webhooks', '/team', '/account', '/activity']) {
      const page = await owner.get(path);
      expect([path, page.statusCode]).toEqual([path, 200]);
      expect(page.body).toContain('This account is suspended.');
    }
    expect((await owner.get('/activity.csv')).statusCode).toBe(200);
    expect((await owner.get('/activity')).body).toContain('Account suspended');
    for (const path of ['/keys', '/trackers', '/webhooks', `/sessions/${session}/reveal`, '/lookup']) {
      const refused = await owner.send(path, { name: 'k' });
      expect([path, refused.statusCode]).toEqual([path, 403]);
      expect(refused.body).toContain('Ask the operator');
    }
    expect((await owner.send('/account/time-zone', { time_zone: 'Europe/Zurich' })).statusCode).toBe(303);
    const { cookie } = owner;
    expect((await browse(api, 'GET', '/dashboard/billing', { cookie })).statusCode).toBe(200);
  });

  it('is listed with its state and its use of the month', async () => {
    const listed = await partner('list');
    expect(listed.find((one: { partner_id: string }) => one.partner_id === key.partner_id)).toMatchObject({
      state: 'suspended',
      keys: 100,
      live_keys: 1,
      trackers: 1,
      captures: 1,
      sessions: 1,
      units: 0,
    });
  });

  it('has everything again once it is resumed, each delivery and unit once', async () => {
    expect(await partner('resume', key.partner_id)).toMatchObject({ state: 'active' });
    await eventually(
      'the delivery',
      () => attempts('session.created'),
      (n) => n === 2,
    );
    await eventually(
      'the reveal’s delivery',
      () => attempts('reveal.completed'),
      (n) => n === 1,
    );
    expect(sent()).toBe(asked + 2);
    expect(await units()).toEqual([1]);
    await eventually(
      'the key is taken',
      () => api.get(key, VISITOR),
      (answer) => answer.statusCode === 200,
    );
    await eventually(
      'the pixel is taken',
      () => collect(api, tracker),
      (answer) => answer.statusCode === 204,
    );
    expect((await owner.get('')).body).not.toContain('This account is suspended.');
    expect((await preflight()).headers['access-control-allow-origin']).toBe(PAGE);
  });

  const ready = async () =>
    (await api.sql.query('select from work.awaited_result where reveal_id = $1 and ready', [revealId])).rows;
});
