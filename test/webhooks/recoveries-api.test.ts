import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { toNewEvents } from '../../commands/handle.ts';
import { DAY, HOUR, isoTime, MINUTE } from '../../domain/kernel/time.ts';
import { type DeliveryEvent, deliveryEvents, endpointChangeEvents } from '../../domain/webhooks/events.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import {
  aDelivery,
  aRecovery,
  attempted,
  queued,
  recoveryRequested,
  type TestDelivery,
  type TestEndpoint,
} from '../support/deliveries.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { codeOf } from '../support/tracking.ts';

const clock = manualClock();
let api: TestApi;
let key: Key;
let receiver: Receiver;
let status = 204;
/** Names the endpoints of the test that runs: those of an earlier one may still be attempted. */
let path = '/';
const received = new Map<string, number>();
beforeAll(async () => {
  receiver = await startReceiver({
    answer: (request, response) => {
      const id = String(request.headers['webhook-id']);
      if (request.path === path) received.set(id, (received.get(id) ?? 0) + 1);
      response.writeHead(status).end();
    },
  });
  api = await startApi({
    clock,
    env: {
      WEBHOOK_ALLOW_HTTP: '1',
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8',
      WEBHOOK_ALLOW_PORTS: String(receiver.port),
      WEBHOOK_QUEUE_PER_PARTNER: '60',
      WEBHOOK_MANAGEMENT_PER_MINUTE: '100000',
    },
  });
});
beforeEach(async () => {
  clock.advance(MINUTE);
  status = 204;
  received.clear();
  path = `/${randomUUID()}`;
  key = await api.key();
});
afterAll(async () => {
  await api.close();
  await receiver.close();
});

const call = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, payload?: object, by: Key = key) =>
  api.inject(by, { method, url: `/v1/webhooks${path}`, ...(payload ? { payload } : {}) });
const newEndpoint = async (): Promise<TestEndpoint> => {
  const url = `http://127.0.0.1:${receiver.port}${path}`;
  const made = await call('POST', '', { name: 'receiver', url, events: ['session.created'] });
  expect(made.statusCode, made.body).toBe(201);
  return { webhook_id: made.json().id, partner_id: key.partner_id };
};
const append = async (...events: DeliveryEvent[]): Promise<void> => {
  const context = { correlationId: 'c', causationId: 'c', at: clock.now() };
  await api.runtime.store.append('deliveries-x', 'any', toNewEvents(deliveryEvents, events, context));
  await api.caughtUp();
};
const sendTest = async (of: TestEndpoint): Promise<{ delivery_id: string; event_id: string }> =>
  (await call('POST', `/${of.webhook_id}/test`, {})).json();
const recover = (of: TestEndpoint, since: unknown = isoTime(clock.now() - DAY), by: Key = key) =>
  call('POST', `/${of.webhook_id}/recover`, { since }, by);
const progressOf = (statusUrl: string, by: Key = key) => api.inject(by, { method: 'GET', url: statusUrl });
const settled = (statusUrl: string) =>
  eventually(
    'no delivery is pending',
    async () => (await progressOf(statusUrl)).json(),
    ({ pending }) => pending === 0,
  );
/** Has tests fail at the receiver until all of them wait or have failed. */
const outage = async (of: TestEndpoint, count: number): Promise<string[]> => {
  status = 503;
  const sent = [];
  for (let n = 0; n < count; n += 1) sent.push(await sendTest(of));
  await eventually(
    'each was attempted',
    async () => received.size,
    (size) => size === count,
  );
  await eventually(
    'each outcome is there',
    async () => (await call('GET', `/${of.webhook_id}/deliveries`)).json().deliveries,
    (all: { attempts: number }[]) => all.every(({ attempts }) => attempts === 1),
  );
  return sent.map(({ event_id }) => event_id);
};

it('delivers what waits since an outage, once each, and shows the progress', async () => {
  const endpoint = await newEndpoint();
  const ids = await outage(endpoint, 5);
  status = 204;
  const answer = await recover(endpoint);
  expect(answer.statusCode, answer.body).toBe(202);
  const { recovery_id, status_url } = answer.json();
  expect(answer.json()).toEqual({
    recovery_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    deliveries: 5,
    status_url: `/v1/webhooks/${endpoint.webhook_id}/recoveries/${recovery_id}`,
    request_id: answer.headers['x-request-id'],
  });
  const done = await settled(status_url);
  expect(done).toEqual({
    recovery_id,
    since: isoTime(clock.now() - DAY),
    deliveries: 5,
    pending: 0,
    delivered: 5,
    failed: 0,
    cancelled: 0,
    expired: 0,
    created_at: isoTime(clock.now()),
    request_id: done.request_id,
  });
  expect([...received]).toEqual(ids.map((id) => [id, 2]));
});

it('keeps to the number that it told, also when deliveries waited no more', async () => {
  const endpoint = await newEndpoint();
  const recovery = aRecovery(clock.now() - DAY);
  // Counted a moment before they were delivered.
  const requested = recoveryRequested(endpoint, recovery, clock.now(), { deliveries: 3 });
  const context = { correlationId: 'c', causationId: 'c', at: clock.now() };
  const events = toNewEvents(endpointChangeEvents, [requested], context);
  await api.runtime.store.append(`webhooks-${endpoint.partner_id}`, 'any', events);
  const url = `/v1/webhooks/${endpoint.webhook_id}/recoveries/${recovery.recovery_id}`;
  await eventually(
    'it is there',
    () => progressOf(url),
    ({ statusCode }) => statusCode === 200,
  );
  expect(await settled(url)).toMatchObject({ deliveries: 3, delivered: 0, cancelled: 3 });
});

it('answers the recovery that runs, to concurrent requests and to later ones, whatever they ask for', async () => {
  const endpoint = await newEndpoint();
  await outage(endpoint, 2);
  const [one, other] = await Promise.all([recover(endpoint), recover(endpoint)]);
  const { status_url, recovery_id } = one.json();
  expect(other.json().recovery_id).toBe(recovery_id);
  const again = await recover(endpoint, isoTime(clock.now()));
  expect(again.statusCode).toBe(202);
  expect(again.json()).toMatchObject({ recovery_id, deliveries: 2 });
  await eventually(
    'both were attempted again, in vain',
    async () => [...received.values()],
    (all) => all.every((n) => n === 2),
  );
  status = 204;
  clock.advance(HOUR);
  await settled(status_url);
  const next = await eventually(
    'the next recovery',
    async () => (await recover(endpoint)).json(),
    (answer) => answer.recovery_id !== recovery_id,
  );
  expect(next).toMatchObject({ deliveries: 0 });
  expect((await progressOf(status_url)).json()).toMatchObject({ deliveries: 2, delivered: 2, cancelled: 0 });
});

it('refuses a since that is no UTC timestamp of the last 30 days, before all else', async () => {
  const endpoint = await newEndpoint();
  const now = clock.now();
  const early = await recover(endpoint, isoTime(now - 30 * DAY - 1));
  expect([early.statusCode, codeOf(early)]).toEqual([400, 'invalid_webhook']);
  expect(codeOf(await call('POST', '/none/recover', {}))).toBe('invalid_webhook');
  expect(codeOf(await call('POST', `/${endpoint.webhook_id}/recover`, { since: isoTime(now), to: 1 }))).toBe(
    'invalid_body',
  );
  const url = `/v1/webhooks/${endpoint.webhook_id}/recover`;
  expect(codeOf(await api.inject(key, { method: 'POST', url }))).toBe('unsupported_media_type');
  expect(codeOf(await api.inject(key, { method: 'POST', url: `${url}?a=1`, payload: { since: 1 } }))).toBe(
    'invalid_webhook_query',
  );
});

it('refuses paused and deleted endpoints, and knows nothing of those of other partners', async () => {
  const endpoint = await newEndpoint();
  const stranger = await api.key();
  const { status_url } = (await recover(endpoint)).json();
  await settled(status_url);
  const at = (recovery: string, webhook = endpoint.webhook_id) =>
    `/v1/webhooks/${webhook}/recoveries/${recovery}`;
  const unknown = '5f1c7a2e-9b1d-4c1e-8a43-0f2d6b7c9e10';
  for (const [answer, code] of [
    [await recover(endpoint, isoTime(clock.now()), stranger), 'webhook_not_found'],
    [await recover({ ...endpoint, webhook_id: unknown }), 'webhook_not_found'],
    [await recover({ ...endpoint, webhook_id: 'x' }), 'webhook_not_found'],
    [await progressOf(status_url, stranger), 'webhook_not_found'],
    [await progressOf(at(unknown)), 'webhook_delivery_not_found'],
    [await progressOf(at('x')), 'webhook_delivery_not_found'],
    [await progressOf(at(unknown, unknown)), 'webhook_not_found'],
    [await progressOf(`${status_url}?a=1`), 'invalid_webhook_query'],
  ] as const)
    expect(codeOf(answer)).toBe(code);
  await call('PATCH', `/${endpoint.webhook_id}`, { enabled: false });
  expect([(await recover(endpoint)).statusCode, codeOf(await recover(endpoint))]).toEqual([
    409,
    'webhook_disabled',
  ]);
  await call('DELETE', `/${endpoint.webhook_id}`);
  expect(codeOf(await recover(endpoint))).toBe('webhook_disabled');
  expect((await progressOf(status_url)).statusCode).toBe(200);
});

it('answers 503 while the queue is full, and shows what is pending of a deleted endpoint as cancelled', async () => {
  const endpoint = await newEndpoint();
  const full: TestDelivery[] = Array.from({ length: 60 }, () => aDelivery(endpoint));
  const [gone] = [aDelivery(endpoint)];
  const now = clock.now();
  await append(
    queued(gone, now),
    attempted(gone, { at: now, error: 'http_status', final: true }),
    ...full.flatMap((d) => [queued(d, now), attempted(d, { at: now, error: 'timeout' })]),
  );
  expect(codeOf(await recover(endpoint))).toBe('webhook_queue_full');
  await append(...full.slice(0, 50).map((d) => attempted(d, { attempt: 2, at: now })));
  const answer = (await recover(endpoint, isoTime(now))).json();
  expect(answer).toMatchObject({ deliveries: 11 });
  await call('DELETE', `/${endpoint.webhook_id}`);
  expect(await settled(answer.status_url)).toMatchObject({ pending: 0, cancelled: expect.any(Number) });
});
