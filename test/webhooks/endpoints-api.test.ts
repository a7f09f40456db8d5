import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { buildApi } from '../../bin/api.ts';
import { openRuntime } from '../../bin/runtime.ts';
import { DAY, MINUTE } from '../../domain/kernel/time.ts';
import { createTargets } from '../../projections/webhooks/endpoints/readers.ts';
import { workerHealth } from '../../read-api/webhooks/endpoints.ts';
import { type Key, type ManualClock, manualClock, NOON, startApi, type TestApi } from '../support/api.ts';
import { codeOf, makeTracker } from '../support/tracking.ts';

let api: TestApi;
let key: Key;
let clock: ManualClock;
beforeAll(async () => {
  clock = manualClock();
  api = await startApi({
    clock,
    env: { WEBHOOK_MANAGEMENT_PER_MINUTE: '60', PUBLIC_URL: 'https://doorplate.test' },
  });
});
// Each of a partner of its own, whose budget is unspent.
beforeEach(async () => {
  clock.set(NOON);
  key = await api.key();
});
afterAll(() => api.close());

const VALID = { name: 'receiver', url: 'https://hooks.example.com/x', events: ['session.created'] };
const NONE = { pending: 0, delivered: 0, failed: 0, cancelled: 0, expired: 0 };
const call = (by: Key, method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path = '', payload?: unknown) =>
  api.inject(by, {
    method,
    url: `/v1/webhooks${path}`,
    ...(payload === undefined ? {} : { payload: payload as object }),
  });
const create = (by: Key, payload: unknown = VALID) => call(by, 'POST', '', payload);
const made = async (by: Key, over: object = {}): Promise<{ id: string; signing_secret: string }> => {
  const answer = await create(by, { ...VALID, ...over });
  expect(answer.statusCode, answer.body).toBe(201);
  return answer.json();
};
const list = async (by: Key) => (await call(by, 'GET')).json();

describe('a webhook endpoint over HTTP', () => {
  it('is created with its secret, shown without it, changed, paused and deleted', async () => {
    const created = await create(key, { ...VALID, name: ' receiver ' });
    const { request_id, signing_secret, ...webhook } = created.json();
    expect(created.statusCode).toBe(201);
    expect(request_id).toBe(created.headers['x-request-id']);
    expect(signing_secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(webhook).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      ...VALID,
      tracker_id: null,
      enabled: true,
      created_at: new Date(NOON).toISOString(),
      updated_at: new Date(NOON).toISOString(),
      deleted_at: null,
      secret_rotation_until: null,
      deliveries: NONE,
    });
    const { webhooks } = await list(key);
    expect(webhooks).toEqual([webhook]);
    expect((await call(key, 'GET', `/${webhook.id}`)).json()).toEqual({
      ...webhook,
      request_id: expect.any(String),
    });

    clock.advance(MINUTE);
    const patch = { name: 'other', events: ['reveal.completed', 'session.created'], enabled: false };
    const changed = (await call(key, 'PATCH', `/${webhook.id}`, patch)).json();
    expect(changed).toMatchObject({ ...patch, updated_at: new Date(NOON + MINUTE).toISOString() });
    clock.advance(MINUTE);
    const unchanged = await call(key, 'PATCH', `/${webhook.id}`, {});
    expect(unchanged.statusCode).toBe(200);
    expect(unchanged.json()).toEqual({ ...changed, request_id: expect.any(String) });
    expect((await list(key)).webhooks).toEqual([{ ...webhook, ...patch, updated_at: changed.updated_at }]);

    const deleted = await call(key, 'DELETE', `/${webhook.id}`);
    expect(deleted.json()).toEqual({
      id: webhook.id,
      deleted: true,
      deleted_at: new Date(clock.now()).toISOString(),
      request_id: deleted.headers['x-request-id'],
    });
    clock.advance(MINUTE);
    const again = await call(key, 'DELETE', `/${webhook.id}`);
    expect([again.statusCode, again.json().deleted_at]).toEqual([200, deleted.json().deleted_at]);
    expect((await list(key)).webhooks).toEqual([]);
  });

  it('is still shown for 90 days after its deletion, and gets no events', async () => {
    const { id } = await made(key);
    const { deleted_at } = (await call(key, 'DELETE', `/${id}`)).json();
    expect((await call(key, 'GET', `/${id}`)).json()).toMatchObject({ id, deleted_at, enabled: false });
    for (const answer of [
      await call(key, 'PATCH', `/${id}`, { enabled: true }),
      await call(key, 'PATCH', `/${id}`, {}),
      await call(key, 'POST', `/${id}/rotate-secret`),
    ]) {
      expect([answer.statusCode, codeOf(answer)]).toEqual([404, 'webhook_not_found']);
    }
    clock.advance(90 * DAY - 1);
    expect((await call(key, 'GET', `/${id}`)).statusCode).toBe(200);
    clock.advance(1);
    for (const method of ['GET', 'DELETE'] as const) {
      expect(codeOf(await call(key, method, `/${id}`))).toBe('webhook_not_found');
    }
  });

  it('gets a new secret, beside which the one before signs for 24 hours', async () => {
    const targetsOf = createTargets(api.runtime);
    const signers = async (id: string) => (await targetsOf([id])).get(id)?.secrets ?? [];
    const keysOf = (...secrets: string[]) =>
      secrets.map((secret) => Buffer.from(secret.slice('whsec_'.length), 'base64'));
    const { id, signing_secret: first } = await made(key);
    await api.caughtUp();
    expect(await signers(id)).toEqual(keysOf(first));

    const rotated = await call(key, 'POST', `/${id}/rotate-secret`, {});
    const { signing_secret: second, secret_rotation_until } = rotated.json();
    expect([rotated.statusCode, secret_rotation_until]).toEqual([200, new Date(NOON + DAY).toISOString()]);
    expect(second).not.toBe(first);
    expect(await signers(id)).toEqual(keysOf(second, first));
    expect((await list(key)).webhooks).toMatchObject([{ secret_rotation_until }]);

    clock.advance(DAY - 1);
    const early = await call(key, 'POST', `/${id}/rotate-secret`);
    expect([early.statusCode, codeOf(early)]).toEqual([409, 'webhook_rotation_pending']);
    clock.advance(1);
    expect(await signers(id)).toEqual(keysOf(second));
    expect((await list(key)).webhooks).toMatchObject([{ secret_rotation_until: null }]);
    expect((await call(key, 'POST', `/${id}/rotate-secret`)).statusCode).toBe(200);
    await call(key, 'DELETE', `/${id}`);
    expect(await signers(id)).toEqual([]);
  });

  it('keeps its secrets sealed in the log and in the read model', async () => {
    const { id, signing_secret } = await made(key);
    await api.caughtUp();
    const plain = Buffer.from(signing_secret.slice('whsec_'.length), 'base64');
    const { rows } = await api.sql.query(
      `select e.data::text || coalesce(r.secret::text, '') as text
       from eventlog.event e left join read.webhook_endpoint r on r.webhook_id = $1
       where e.data::text like '%' || $1 || '%'`,
      [id],
    );
    expect(rows).not.toEqual([]);
    for (const { text } of rows) {
      for (const form of ['base64', 'hex', 'base64url'] as const) {
        expect(text).not.toContain(plain.toString(form).replace(/=$/, ''));
      }
    }
  });

  test.each<[string, unknown, string]>([
    ['nothing', {}, 'invalid_webhook'],
    ['no name', { ...VALID, name: undefined }, 'invalid_webhook'],
    ['a name that is no string', { ...VALID, name: 7 }, 'invalid_webhook'],
    ['no events', { ...VALID, events: undefined }, 'invalid_webhook'],
    ['events that are no list', { ...VALID, events: 'session.created' }, 'invalid_webhook'],
    ['an event that cannot be subscribed to', { ...VALID, events: ['webhook.test'] }, 'invalid_webhook'],
    ['a tracker_id that is no UUID', { ...VALID, tracker_id: 'x' }, 'invalid_webhook'],
    ['a tracker_id that is no string', { ...VALID, tracker_id: 7 }, 'invalid_webhook'],
    ['no url', { ...VALID, url: undefined }, 'invalid_webhook_url'],
    ['a url that is no string', { ...VALID, url: null }, 'invalid_webhook_url'],
    ['a url of its own', { ...VALID, url: 'https://doorplate.test/x' }, 'invalid_webhook_url'],
    ['another property', { ...VALID, enabled: true }, 'invalid_body'],
    ['no object', [], 'invalid_body'],
    ['a body that is too large', { ...VALID, name: 'x'.repeat(16_400) }, 'body_too_large'],
  ])('is not created with %s', async (_what, payload, code) => {
    const answer = await api.inject(key, {
      method: 'POST',
      url: '/v1/webhooks',
      headers: { 'content-type': 'application/json' },
      payload: JSON.stringify(payload),
    });
    expect([answer.statusCode, codeOf(answer)]).toEqual([code === 'body_too_large' ? 413 : 400, code]);
  });

  test.each<[string, unknown, string]>([
    ['a name that is null', { name: null }, 'invalid_webhook'],
    ['a word for enabled', { enabled: 'yes' }, 'invalid_webhook'],
    ['a url', { url: VALID.url }, 'invalid_body'],
    ['a tracker', { tracker_id: null }, 'invalid_body'],
    ['no object', [], 'invalid_body'],
  ])('is not changed with %s', async (_what, payload, code) => {
    const { id } = await made(key);
    const answer = await call(key, 'PATCH', `/${id}`, payload);
    expect([answer.statusCode, codeOf(answer)]).toEqual([400, code]);
  });

  it('is of all trackers, or of one that the partner has', async () => {
    const [own, gone] = [await makeTracker(api, key), await makeTracker(api, key)];
    const foreign = await makeTracker(api, await api.key());
    await api.inject(key, { method: 'POST', url: `/v1/trackers/${gone}/delete` });
    expect(await made(key, { tracker_id: own.toUpperCase() })).toMatchObject({ tracker_id: own });
    for (const tracker_id of [gone, foreign, randomUUID()]) {
      const answer = await create(key, { ...VALID, tracker_id });
      expect([answer.statusCode, codeOf(answer)]).toEqual([404, 'tracker_not_found']);
    }
  });

  it("is the partner's own, whatever key it calls with, and takes no query", async () => {
    const { id } = await made(key);
    const stranger = await api.key();
    const sibling = await api.key({}, key.partner_id);
    expect((await call(sibling, 'GET', `/${id}`)).statusCode).toBe(200);
    expect((await list(stranger)).webhooks).toEqual([]);
    for (const [method, path, payload] of [
      ['GET', '', undefined],
      ['PATCH', '', {}],
      ['DELETE', '', undefined],
      ['POST', '/rotate-secret', {}],
    ] as const) {
      for (const target of [id, randomUUID(), 'no-uuid']) {
        const answer = await call(stranger, method, `/${target}${path}`, payload);
        expect([answer.statusCode, codeOf(answer)], `${method} ${target}`).toEqual([
          404,
          'webhook_not_found',
        ]);
      }
      expect(codeOf(await call(key, method, `/${id}${path}?x=1`, payload))).toBe('invalid_webhook_query');
    }
    for (const [method, payload] of [
      ['GET', undefined],
      ['POST', VALID],
    ] as const) {
      expect(codeOf(await call(key, method, '?limit=5', payload))).toBe('invalid_webhook_query');
    }
  });
});

describe('limits of webhooks', () => {
  it('admit five endpoints exactly, however many are created at once', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => create(key)));
    expect(answers.filter(({ statusCode }) => statusCode === 201)).toHaveLength(5);
    const refused = answers.filter((answer) => codeOf(answer) === 'webhook_limit');
    expect(refused).toHaveLength(45);
    expect(refused[0]?.statusCode).toBe(429);
    expect(refused[0]?.headers['retry-after']).toMatch(/^\d+$/);
    const { webhooks } = await list(key);
    await call(key, 'PATCH', `/${webhooks[0].id}`, { enabled: false });
    expect(codeOf(await create(key))).toBe('webhook_limit');
    await call(key, 'DELETE', `/${webhooks[0].id}`);
    expect((await create(key)).statusCode).toBe(201);
  });

  it('are shown in the list', async () => {
    expect((await list(key)).limits).toEqual({
      endpoints: 5,
      management_per_minute: 60,
      pending_deliveries: 2_500_000,
      concurrent_per_endpoint: 32,
      starts_per_second_per_endpoint: 200,
      event_bytes: 1_048_576,
      timeout_seconds: 10,
      attempts: 12,
      retry_days: 7,
    });
  });

  it('hold for all management calls of a partner in a minute, apart from its lookups', async () => {
    const sibling = await api.key({}, key.partner_id);
    const { id } = await made(key);
    const calls = [
      () => call(key, 'GET'),
      () => call(sibling, 'GET', `/${id}`),
      () => call(key, 'PATCH', `/${id}`, {}),
      () => call(sibling, 'DELETE', '/no-uuid'),
    ];
    const answers = await Promise.all(Array.from({ length: 59 }, (_, n) => calls[n % calls.length]?.()));
    for (const answer of answers) expect(answer?.statusCode).not.toBe(429);
    for (const ask of calls) {
      const refused = await ask();
      expect([refused.statusCode, codeOf(refused)]).toEqual([429, 'webhook_management_limit']);
      const wait = Number(refused.headers['retry-after']);
      expect(wait).toBeGreaterThan(0);
      expect(wait).toBeLessThanOrEqual(60);
    }
    expect((await api.usage(key)).statusCode).toBe(200);
    expect((await list(await api.key())).webhooks).toEqual([]);
    const { headers } = await call(key, 'GET');
    clock.advance(Number(headers['retry-after']) * 1_000);
    expect((await call(key, 'GET')).statusCode).toBe(200);
  });

  it("spend the key's own rate too, and first", async () => {
    const slow = await api.key({ requests_per_second: 1 }, key.partner_id);
    await call(slow, 'GET');
    expect(codeOf(await call(slow, 'GET'))).toBe('rate_limit');
  });
});

describe('the worker of webhooks', () => {
  const worker = async () => (await list(key)).worker;
  const beat = (role: string, ago = 0) =>
    api.sql.query('insert into work.process (process_id, role, seen_at) values ($1, $2, $3)', [
      randomUUID(),
      role,
      new Date(clock.now() - ago),
    ]);

  it('is shown as running while a process that delivers beats', async () => {
    expect(await worker()).toEqual({ status: 'stopped', last_seen_at: null, due: 0, oldest_due_at: null });
    await beat('api');
    expect(await worker()).toMatchObject({ status: 'stopped', last_seen_at: null });
    await beat('workers', 6_000);
    const last_seen_at = new Date(clock.now() - 6_000).toISOString();
    expect(await worker()).toMatchObject({ status: 'stopped', last_seen_at });
    await beat('all');
    expect(await worker()).toMatchObject({ status: 'running', last_seen_at: new Date(NOON).toISOString() });
    await api.sql.query('delete from work.process');
  });

  it('is shown as stalled while one beats and due deliveries wait for over a minute', async () => {
    const health = (waitedMs: number) => {
      const oldest_due_at = new Date(clock.now() - waitedMs).toISOString();
      const queueState = async () => ({ due: 3, oldest_due_at });
      return workerHealth({ db: api.runtime.db, queueState }, key.partner_id, clock.now());
    };
    expect(await health(2 * MINUTE)).toMatchObject({ status: 'stopped', due: 3 });
    await beat('workers');
    expect(await health(MINUTE)).toMatchObject({ status: 'running' });
    expect(await health(MINUTE + 1)).toMatchObject({ status: 'stalled' });
    await api.sql.query('delete from work.process');
  });
});

describe('webhooks on two nodes', () => {
  it('show what was written on the other, and hold the limit together', async () => {
    const { config, log } = api.runtime;
    const runtime = await openRuntime(config, log, 'join', { clock });
    const presence = { processId: randomUUID(), alone: () => false, stop: async () => {} };
    const there = await buildApi(runtime, presence, 'http://doorplate.test', () => true);
    const headers = { authorization: `Bearer ${key.api_key}` };
    const onOther = (method: 'GET' | 'POST' | 'PATCH', path = '', payload?: object) =>
      there.app.inject({
        method,
        url: `/v1/webhooks${path}`,
        headers,
        ...(payload === undefined ? {} : { payload }),
      });
    try {
      await there.app.ready();
      const { id } = await made(key);
      expect((await onOther('GET', `/${id}`)).json()).toMatchObject({ id });
      expect((await onOther('PATCH', `/${id}`, { enabled: false })).statusCode).toBe(200);
      expect((await list(key)).webhooks).toMatchObject([{ id, enabled: false }]);
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => (n % 2 ? create(key) : onOther('POST', '', VALID))),
      );
      expect(answers.filter(({ statusCode }) => statusCode === 201)).toHaveLength(4);
      const ids = (answer: { json(): { webhooks: { id: string }[] } }) =>
        answer.json().webhooks.map((webhook) => webhook.id);
      expect(ids(await onOther('GET'))).toEqual(ids(await call(key, 'GET')));
    } finally {
      await there.close();
      await runtime.close();
    }
  });
});

describe('webhooks without their backends', () => {
  it('are shown as unavailable', async () => {
    const failing = await startApi({
      aroundStore: (store) => ({
        ...store,
        append: (stream, ...rest) =>
          stream.startsWith('webhooks-')
            ? Promise.reject(Object.assign(new Error('gone'), { code: 'ECONNRESET' }))
            : store.append(stream, ...rest),
      }),
    });
    try {
      const by = await failing.key();
      const answer = await failing.inject(by, { method: 'POST', url: '/v1/webhooks', payload: VALID });
      expect([answer.statusCode, codeOf(answer)]).toEqual([503, 'webhooks_unavailable']);
      expect(answer.headers['retry-after']).toMatch(/^\d+$/);
    } finally {
      await failing.close();
    }
  });
});
