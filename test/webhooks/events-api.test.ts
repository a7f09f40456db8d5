import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { forgetOldDeliveries, sweepToEnd } from '../../bin/retention.ts';
import { DAY } from '../../domain/kernel/time.ts';
import { QUEUEING } from '../../processors/webhooks/queue-webhook-events.ts';
import { createBodies } from '../../projections/webhooks/payloads/readers.ts';
import { webhookEvent } from '../../read-api/webhooks/delivery-schemas.ts';
import { type Key, manualClock, NOON, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { codeOf, collect, feed, makeTracker } from '../support/tracking.ts';

const CEILING = 4;
const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let key: Key;
let tracker: string;
let address = 0;

beforeAll(async () => {
  api = await startApi({
    clock,
    providers: [provider],
    env: { WEBHOOK_QUEUE_PER_PARTNER: String(CEILING), WEBHOOK_MANAGEMENT_PER_MINUTE: '1000' },
  });
  provider.saysOtherwise(aCompany('Acme'));
});
afterAll(() => api.close());
beforeEach(async () => {
  clock.set(NOON);
  key = await api.key();
  tracker = await makeTracker(api, key, { customer_reference: 'customer-42' });
});

type Type = 'session.created' | 'reveal.completed';
const webhook = (method: 'POST' | 'PATCH' | 'DELETE', path: string, payload?: object, by = key) =>
  api.inject(by, { method, url: `/v1/webhooks${path}`, ...(payload && { payload }) });
/** Nothing is delivered to it: its name is unregistered. */
const endpoint = async (events: readonly Type[], tracker_id: string | null = null, by = key) => {
  const payload = { name: 'receiver', url: 'https://receiver.invalid/', events, tracker_id };
  const made = await webhook('POST', '', payload, by);
  expect(made.statusCode, made.body).toBe(201);
  return made.json().id as string;
};
const visit = async (of = tracker, body: object = {}) => {
  address += 1;
  const ip = `5.9.${address >> 8}.${address & 255}`;
  const answer = await collect(api, of, { ip, body: { custom: { n: address }, ...body } });
  return { answer, ip };
};
const session = async (
  of = tracker,
): Promise<{ readonly [field: string]: unknown; readonly session_id: string }> => {
  await visit(of);
  const { sessions } = await feed(api, key, `tracker_id=${of}&limit=100`);
  return sessions.at(-1) as never;
};
const reveal = (sessionId: string, idempotencyKey: string = randomUUID()) =>
  api.inject(key, {
    method: 'POST',
    url: `/v1/sessions/${sessionId}/reveal`,
    headers: { 'idempotency-key': idempotencyKey },
  });

/** Everything that has happened is queued by then. */
const queued = async (by = key): Promise<{ webhook_id: string; event_id: string; state: string }[]> => {
  const { store, processed } = api.runtime;
  await processed.reached([QUEUEING.name], await store.head(), 5_000);
  await api.caughtUp();
  const { rows } = await api.sql.query(
    'select webhook_id, event_id, state from read.webhook_delivery where partner_id = $1 order by position, webhook_id',
    [by.partner_id],
  );
  return rows;
};
const bodyOf = async (eventId: string): Promise<unknown> => {
  const { dayKeys } = api.runtime;
  const body = await createBodies(api.sql, dayKeys, () => clock.now())(eventId);
  const event = body && JSON.parse(body.toString());
  // Each is as the OpenAPI document has it.
  if (event !== null) webhookEvent.parse(event);
  return event;
};

describe('what happens on a website', () => {
  it('is queued for the endpoints that are enabled and subscribed at that moment', async () => {
    const other = await makeTracker(api, key);
    const all = await endpoint(['session.created', 'reveal.completed']);
    const mine = await endpoint(['session.created'], tracker);
    await endpoint(['session.created'], other);
    await endpoint(['reveal.completed']);
    const paused = await endpoint(['session.created']);
    await webhook('PATCH', `/${paused}`, { enabled: false });
    const { session_id } = await session();
    const event_id = `evt_session_${session_id}`;
    const expected = [all, mine].toSorted().map((webhook_id) => ({ webhook_id, event_id, state: 'pending' }));
    expect((await queued()).toSorted(byWebhook)).toEqual(expected);

    // Nothing is made up for.
    await webhook('PATCH', `/${paused}`, { enabled: true });
    expect(await queued()).toHaveLength(2);
  });

  it('is queued as it was, once, with the labels and the reference', async () => {
    await endpoint(['session.created', 'reveal.completed']);
    const preview = await session();
    await reveal(preview.session_id);
    const completed = await eventually('the reveal is complete', async () => (await queued())[1]);
    const [first] = await queued();
    expect(await bodyOf(first?.event_id ?? '')).toEqual({
      id: `evt_session_${preview.session_id}`,
      type: 'session.created',
      schema_version: 1,
      created_at: preview.first_seen_at,
      data: preview,
    });
    const id = completed?.event_id.slice('evt_reveal_'.length);
    const receipt = (await api.inject(key, { method: 'GET', url: `/v1/reveals/${id}` })).json();
    const { request_id: _, ...data } = receipt;
    expect(await bodyOf(completed?.event_id ?? '')).toEqual({
      id: `evt_reveal_${id}`,
      type: 'reveal.completed',
      schema_version: 1,
      created_at: receipt.completed_at,
      data,
    });
    expect(data).toMatchObject({ custom: preview.custom, billable_units: 1, status: 'complete' });
  });
});

describe('a pending reveal', () => {
  it('completes by itself while an endpoint subscribes to it', async () => {
    await endpoint(['reveal.completed'], tracker);
    const { session_id } = await session();
    expect((await reveal(session_id)).statusCode).toBe(202);
    await eventually('it is queued', async () => (await queued()).length === 1);
  });

  it('otherwise waits for a reader or an endpoint', async () => {
    await endpoint(['session.created']);
    await endpoint(['reveal.completed'], await makeTracker(api, key));
    const { session_id } = await session();
    const { reveal_id } = (await reveal(session_id)).json();
    await eventually('its result is there', async () => {
      const { rows } = await api.sql.query('select ready from work.awaited_result where reveal_id = $1', [
        reveal_id,
      ]);
      return rows[0]?.ready;
    });
    expect(await queued()).toHaveLength(1);
    await endpoint(['reveal.completed']);
    const isQueued = async () =>
      (await queued()).some(({ event_id }) => event_id === `evt_reveal_${reveal_id}`);
    await eventually('it is queued', isQueued);
  });
});

describe('a full queue', () => {
  const full = async () => {
    const webhookId = await endpoint(['session.created', 'reveal.completed']);
    for (let n = 0; n < CEILING; n += 1) expect((await visit()).answer.statusCode).toBe(204);
    return webhookId;
  };

  it('refuses what would be queued, before anything is acknowledged, and nothing else', async () => {
    const token = randomUUID();
    await collect(api, tracker, { ip: '5.8.0.2', body: { token } });
    const webhookId = await full();
    for (let n = 0; n < 2; n += 1) {
      const { answer } = await visit();
      expect([answer.statusCode, codeOf(answer)]).toEqual([503, 'tracking_unavailable']);
    }
    // A visit of a session that there is.
    expect((await collect(api, tracker, { ip: '5.8.0.2', body: { token } })).statusCode).toBe(204);
    const { sessions } = await feed(api, key, 'limit=100');
    expect(sessions).toHaveLength(CEILING + 1);
    expect(await queued()).toHaveLength(CEILING);

    const test = await webhook('POST', `/${webhookId}/test`, {});
    expect([test.statusCode, codeOf(test)]).toEqual([503, 'webhook_queue_full']);
    // Pausing frees nothing, and its sessions are queued for no endpoint.
    await webhook('PATCH', `/${webhookId}`, { enabled: false });
    await eventually('sessions are captured again', async () => (await visit()).answer.statusCode === 204);
    await webhook('PATCH', `/${webhookId}`, { enabled: true });
    await eventually('the queue is full', async () => (await visit()).answer.statusCode === 503);
    // Others have queues of their own.
    const stranger = await api.key();
    await endpoint(['session.created'], null, stranger);
    expect((await visit(await makeTracker(api, stranger))).answer.statusCode).toBe(204);
    // A deleted endpoint's deliveries are cancelled.
    await webhook('DELETE', `/${webhookId}`);
    await eventually('sessions are captured again', async () => (await visit()).answer.statusCode === 204);
  });

  it('takes an event for two endpoints whole or not at all', async () => {
    await endpoint(['session.created']);
    await visit();
    await queued();
    await endpoint(['session.created']);
    expect((await visit()).answer.statusCode).toBe(204);
    expect((await visit()).answer.statusCode).toBe(503);
    expect(await queued()).toHaveLength(3);
  });

  it('lets reveals be asked for, keeps them pending, and completes them when there is room', async () => {
    const [known, unknown] = [await session(), await session()];
    const { ip } = await visit();
    const last = (await feed(api, key, 'limit=100')).sessions.at(-1)?.session_id as string;
    await api.post(key, ip);
    await api.settled(key, ip);
    const webhookId = await full();
    const refused = await reveal(last);
    expect([refused.statusCode, codeOf(refused)]).toEqual([503, 'tracking_unavailable']);
    const pending = await Promise.all([known, unknown].map(({ session_id }) => reveal(session_id)));
    expect(pending.map(({ statusCode }) => statusCode)).toEqual([202, 202]);
    const receipt = () => api.inject(key, { method: 'GET', url: pending[0]?.json().status_url });
    await eventually('its result is there', async () => {
      const { rows } = await api.sql.query('select ready from work.awaited_result where partner_id = $1', [
        key.partner_id,
      ]);
      return rows.length === 2 && rows.every(({ ready }) => ready);
    });
    expect((await receipt()).statusCode).toBe(202);
    await endpoint(['reveal.completed']);
    await webhook('DELETE', `/${webhookId}`);
    await eventually('it completes', async () => (await queued()).length === CEILING + 2);
    expect((await receipt()).statusCode).toBe(200);
  });
});

describe('a test', () => {
  it('is queued for an enabled endpoint, whatever that is subscribed to', async () => {
    const webhookId = await endpoint(['reveal.completed']);
    const sent = await webhook('POST', `/${webhookId}/test`, {});
    expect(sent.statusCode).toBe(202);
    const { delivery_id, event_id, status, request_id } = sent.json();
    expect([status, request_id]).toEqual(['pending', sent.headers['x-request-id']]);
    expect(delivery_id).toMatch(/^[0-9a-f-]{36}$/);
    expect(await queued()).toEqual([{ webhook_id: webhookId, event_id, state: 'pending' }]);
    expect(await bodyOf(event_id)).toEqual({
      id: event_id,
      type: 'webhook.test',
      schema_version: 1,
      created_at: new Date(NOON).toISOString(),
      data: { message: expect.any(String) },
    });
  });

  it('is refused for endpoints that are paused, deleted, unknown or of others, and with a body of its own', async () => {
    const webhookId = await endpoint(['session.created']);
    const refusal = async (id: string, payload: object = {}, by = key) => {
      const answer = await webhook('POST', `/${id}/test`, payload, by);
      return [answer.statusCode, codeOf(answer)];
    };
    expect(await refusal(webhookId, { message: 'x' })).toEqual([400, 'invalid_body']);
    expect(await refusal(webhookId, {}, await api.key())).toEqual([404, 'webhook_not_found']);
    expect(await refusal(randomUUID())).toEqual([404, 'webhook_not_found']);
    expect(await refusal('x')).toEqual([404, 'webhook_not_found']);
    await webhook('PATCH', `/${webhookId}`, { enabled: false });
    expect(await refusal(webhookId)).toEqual([409, 'webhook_disabled']);
    await webhook('DELETE', `/${webhookId}`);
    expect(await refusal(webhookId)).toEqual([404, 'webhook_not_found']);
    expect(await queued()).toEqual([]);
  });
});

describe('after thirty days', () => {
  it('a body is gone everywhere, and its deliveries have expired', async () => {
    await endpoint(['session.created']);
    const { session_id } = await session();
    const event_id = `evt_session_${session_id}`;
    await queued();
    clock.advance(31 * DAY);
    expect(await bodyOf(event_id)).toBeNull();
    // Once all who follow the log have passed it.
    await eventually('the body is swept', async () => {
      await sweepToEnd(api.runtime);
      const { rows } = await api.sql.query('select from read.webhook_payload where event_id = $1', [
        event_id,
      ]);
      return rows.length === 0;
    });
    expect((await queued()).map(({ state }) => state)).toEqual(['expired']);
    const kept = await api.sql.query('select from eventlog.event where stream = $1', [`payload-${event_id}`]);
    expect(kept.rows).toEqual([]);
    const bytes = await api.sql.query('select bytes from read.webhook_retained where partner_id = $1', [
      key.partner_id,
    ]);
    expect(bytes.rows).toEqual([]);
  });
});

describe('after ninety days', () => {
  it('nothing is left of a delivery', async () => {
    const webhookId = await endpoint(['session.created']);
    await session();
    expect(await queued()).toHaveLength(1);
    clock.advance(92 * DAY);
    await eventually('its stream is deleted', async () => {
      await sweepToEnd(api.runtime);
      await forgetOldDeliveries(api.runtime).catch(() => undefined);
      return (await queued()).length === 0;
    });
    const left = 'select from eventlog.event where stream ^@ $1';
    expect((await api.sql.query(left, [`deliveries-${webhookId}`])).rows).toEqual([]);
    const totals = 'select from read.webhook_total where webhook_id = $1';
    expect((await api.sql.query(totals, [webhookId])).rows).toEqual([]);
  });
});

const byWebhook = (a: { webhook_id: string }, b: { webhook_id: string }): number =>
  a.webhook_id < b.webhook_id ? -1 : 1;
