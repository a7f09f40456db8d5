import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sweepToEnd } from '../../bin/retention.ts';
import { toNewEvents } from '../../commands/handle.ts';
import { DAY, isoTime, MINUTE } from '../../domain/kernel/time.ts';
import { type DeliveryEvent, deliveryEvents } from '../../domain/webhooks/events.ts';
import { type Key, type ManualClock, manualClock, NOON, startApi, type TestApi } from '../support/api.ts';
import { loggedIn, makeUser } from '../support/dashboard.ts';
import {
  aDelivery,
  attempted,
  expired,
  queued,
  type TestDelivery,
  type TestEndpoint,
} from '../support/deliveries.ts';
import { eventually } from '../support/eventually.ts';
import { codeOf } from '../support/tracking.ts';

interface Received {
  readonly id: string;
  readonly body: string;
}

let api: TestApi;
let key: Key;
let clock: ManualClock;
let status = 204;
/** Resolves when the receiver may answer. */
let answerable: Promise<void> = Promise.resolve();
const received: Received[] = [];
const receiver = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    received.push({ id: String(request.headers['webhook-id']), body: Buffer.concat(chunks).toString() });
    void answerable.then(() => response.writeHead(status).end());
  });
});
let url: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address() as AddressInfo;
  url = `http://127.0.0.1:${port}/hook`;
  clock = manualClock();
  api = await startApi({
    clock,
    env: {
      PUBLIC_URL: 'https://doorplate.test',
      WEBHOOK_ALLOW_HTTP: '1',
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8',
      WEBHOOK_ALLOW_PORTS: String(port),
      WEBHOOK_QUEUE_PER_PARTNER: '60',
      // Polls of a slow machine must not use it up.
      WEBHOOK_MANAGEMENT_PER_MINUTE: '100000',
    },
  });
});
beforeEach(async () => {
  clock.advance(MINUTE);
  status = 204;
  received.length = 0;
  key = await api.key();
});
afterAll(async () => {
  await api.close();
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
});

const call = (by: Key, method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, payload?: object) =>
  api.inject(by, { method, url: `/v1/webhooks${path}`, ...(payload ? { payload } : {}) });
const newEndpoint = async (by: Key = key): Promise<TestEndpoint> => {
  const made = await call(by, 'POST', '', { name: 'receiver', url, events: ['session.created'] });
  expect(made.statusCode, made.body).toBe(201);
  return { webhook_id: made.json().id, partner_id: by.partner_id };
};
const pause = (of: TestEndpoint, by: Key = key) => call(by, 'PATCH', `/${of.webhook_id}`, { enabled: false });
const FIT_IN_AN_APPEND = 1_000;
const append = async (...events: DeliveryEvent[]): Promise<void> => {
  const context = { correlationId: 'c', causationId: 'c', at: clock.now() };
  for (let from = 0; from < events.length; from += FIT_IN_AN_APPEND) {
    const some = events.slice(from, from + FIT_IN_AN_APPEND);
    await api.runtime.store.append('deliveries-x', 'any', toNewEvents(deliveryEvents, some, context));
  }
  await api.caughtUp();
};
const historyOf = (of: TestEndpoint, query = '', by: Key = key) =>
  call(by, 'GET', `/${of.webhook_id}/deliveries${query}`);
const listed = async (of: TestEndpoint, query = ''): Promise<{ id: string; state: string }[]> => {
  const answer = await historyOf(of, query);
  expect(answer.statusCode, answer.body).toBe(200);
  return answer.json().deliveries;
};
const detailOf = (of: TestEndpoint, id: string, by: Key = key) =>
  call(by, 'GET', `/${of.webhook_id}/deliveries/${id}`);
const retry = (of: TestEndpoint, id: string, by: Key = key) =>
  call(by, 'POST', `/${of.webhook_id}/deliveries/${id}/retry`);
const sendTest = async (of: TestEndpoint): Promise<{ delivery_id: string; event_id: string }> => {
  const answer = await call(key, 'POST', `/${of.webhook_id}/test`, {});
  expect(answer.statusCode, answer.body).toBe(202);
  return answer.json();
};
const inState = (of: TestEndpoint, id: string, state: string) =>
  eventually(
    `it is ${state}`,
    async () =>
      (
        await api.inject(key, { method: 'GET', url: `/v1/webhooks/${of.webhook_id}/deliveries/${id}` })
      ).json(),
    (is) => is.state === state,
  );
/** Appends deliveries that were delivered at once. */
const deliver = async (of: TestEndpoint, count: number): Promise<TestDelivery[]> => {
  const now = clock.now();
  const made = Array.from({ length: count }, () => aDelivery(of));
  await append(...made.flatMap((d) => [queued(d, now), attempted(d, { at: now })]));
  return made;
};
/** The state of a delivery by each way that shows it, and the endpoint's totals. */
const shown = async (of: TestEndpoint, id: string) => {
  const dashboard = await loggedIn(api, await makeUser(api, key.partner_id));
  const states = ['pending', 'delivered', 'failed', 'cancelled', 'expired'];
  const lists: string[] = [];
  const pages: string[] = [];
  for (const state of states) {
    const list = await listed(of, `?status=${state}`);
    for (const found of list) if (found.id === id) lists.push(state, found.state);
    const page = await dashboard.get(`/webhooks/${of.webhook_id}/deliveries?status=${state}`);
    if (page.body.includes(id)) pages.push(state);
  }
  return {
    detail: (await detailOf(of, id)).json().state,
    all: (await listed(of)).find((found) => found.id === id)?.state,
    lists,
    pages,
    totals: (await call(key, 'GET', `/${of.webhook_id}`)).json().deliveries,
  };
};
/** One in each state that rows have; nothing of it is due. */
const oneOfEach = async (of: TestEndpoint) => {
  const now = clock.now();
  const made = {
    pending: aDelivery(of),
    delivered: aDelivery(of),
    failed: aDelivery(of),
    expired: aDelivery(of),
  };
  await append(
    ...Object.values(made).map((d) => queued(d, now)),
    attempted(made.pending, { at: now, error: 'timeout' }),
    attempted(made.delivered, { at: now }),
    attempted(made.failed, { at: now, error: 'http_status', final: true }),
    expired(of, [made.expired]),
  );
  return made;
};

describe('the history of an endpoint', () => {
  it('shows the delivery of a test, with the very event that the receiver got', async () => {
    const endpoint = await newEndpoint();
    const { delivery_id, event_id } = await sendTest(endpoint);
    const detail = await inState(endpoint, delivery_id, 'delivered');
    expect(received).toMatchObject([{ id: event_id }]);
    expect(detail).toEqual({
      id: delivery_id,
      event_id,
      type: 'webhook.test',
      state: 'delivered',
      attempts: 1,
      created_at: isoTime(clock.now()),
      last_attempt_at: isoTime(clock.now()),
      // The duration of an attempt is real time.
      delivered_at: expect.stringMatching(/^2026-03-14T12:31:0/),
      next_attempt_at: null,
      http_status: 204,
      error: null,
      event: JSON.parse(received[0]?.body ?? ''),
      request_id: detail.request_id,
    });
    const answer = await historyOf(endpoint);
    const { event: _, request_id: __, ...fields } = detail;
    expect(answer.json()).toEqual({
      deliveries: [fields],
      has_more: false,
      next_cursor: '',
      request_id: answer.headers['x-request-id'],
    });
  });

  it('filters by each of the five states, by the clock and the endpoint as they are now', async () => {
    const endpoint = await newEndpoint();
    const made = await oneOfEach(endpoint);
    const idsIn = async (state: string) => (await listed(endpoint, `?status=${state}`)).map(({ id }) => id);
    for (const [state, { delivery_id }] of Object.entries(made)) {
      expect(await idsIn(state), state).toEqual([delivery_id]);
    }
    expect(await idsIn('cancelled')).toEqual([]);
    expect(await listed(endpoint)).toHaveLength(4);
    const totals = async () => (await call(key, 'GET', `/${endpoint.webhook_id}`)).json().deliveries;
    expect(await totals()).toEqual({ pending: 1, delivered: 1, failed: 1, cancelled: 0, expired: 1 });

    await call(key, 'DELETE', `/${endpoint.webhook_id}`);
    expect(await idsIn('cancelled')).toEqual([made.pending.delivery_id]);
    expect(await idsIn('pending')).toEqual([]);
    expect((await detailOf(endpoint, made.pending.delivery_id)).json()).toMatchObject({
      state: 'cancelled',
      next_attempt_at: null,
    });
    expect(await totals()).toEqual({ pending: 0, delivered: 1, failed: 1, cancelled: 1, expired: 1 });

    clock.advance(30 * DAY);
    const later = Object.values(made).map(({ delivery_id }) => delivery_id);
    expect((await idsIn('expired')).toSorted()).toEqual(later.toSorted());
    expect(await idsIn('delivered')).toEqual([]);
    expect(await totals()).toEqual({ pending: 0, delivered: 0, failed: 0, cancelled: 0, expired: 4 });
    clock.set(NOON);
  });

  it.each([
    ['alone', 0, 0],
    ['beside a backlog of another partner', 5_001, 0],
    ['beside a backlog of its endpoint', 0, 5_001],
  ])(
    'shows a delivered delivery as expired from the moment that its payload is, %s',
    async (_, theirs, ours) => {
      const endpoint = await newEndpoint();
      await deliver(await newEndpoint(await api.key()), theirs);
      await deliver(endpoint, ours);
      clock.advance(MINUTE);
      const { delivery_id } = await sendTest(endpoint);
      await inState(endpoint, delivery_id, 'delivered');
      const is = (state: string, totals: object) => ({
        detail: state,
        all: state,
        lists: [state, state],
        pages: [state],
        totals: { pending: 0, delivered: 0, failed: 0, cancelled: 0, expired: 0, ...totals },
      });
      const expires = clock.now() + 30 * DAY;
      clock.set(expires - 1);
      expect(await shown(endpoint, delivery_id)).toEqual(is('delivered', { delivered: 1, expired: ours }));
      for (const at of [expires, expires + DAY]) {
        clock.set(at);
        expect(await shown(endpoint, delivery_id)).toEqual(is('expired', { expired: ours + 1 }));
      }
      await sweepToEnd(api.runtime);
      await api.caughtUp();
      expect(await shown(endpoint, delivery_id)).toEqual(is('expired', { expired: ours + 1 }));
      clock.set(NOON);
    },
  );

  it('has pages of 50, newest first, which stay as they are while others come', async () => {
    const endpoint = await newEndpoint();
    const made = (await deliver(endpoint, 120)).map(({ delivery_id }) => delivery_id).reverse();
    const pages: string[][] = [];
    let query = '?status=delivered';
    for (let cursor = 'x'; cursor !== ''; ) {
      const answer = (await historyOf(endpoint, query)).json();
      pages.push(answer.deliveries.map(({ id }: { id: string }) => id));
      cursor = answer.next_cursor;
      expect(answer.has_more).toBe(cursor !== '');
      query = `?status=delivered&cursor=${cursor}`;
      await deliver(endpoint, 3);
    }
    expect(pages.map((page) => page.length)).toEqual([50, 50, 20]);
    expect(pages.flat()).toEqual(made);
    expect(await listed(endpoint)).toHaveLength(50);
  });

  it('refuses queries that it does not know, and cursors of another list', async () => {
    const endpoint = await newEndpoint();
    const [d] = (await deliver(endpoint, 51)) as [TestDelivery];
    const { next_cursor } = (await historyOf(endpoint)).json();
    expect(next_cursor).not.toBe('');
    const other = await newEndpoint();
    for (const [of, query] of [
      [endpoint, '?limit=10'],
      [endpoint, '?status=done'],
      [endpoint, '?status='],
      [endpoint, '?status=failed&status=failed'],
      [endpoint, '?cursor='],
      [endpoint, `?cursor=${next_cursor}x`],
      [endpoint, `?cursor=${next_cursor}&status=delivered`],
      [other, `?cursor=${next_cursor}`],
    ] as const) {
      const answer = await historyOf(of, query);
      expect([answer.statusCode, codeOf(answer)], query).toEqual([400, 'invalid_webhook_query']);
    }
    expect(codeOf(await call(key, 'GET', `/${endpoint.webhook_id}/deliveries/${d.delivery_id}?a=1`))).toBe(
      'invalid_webhook_query',
    );
  });

  it('is hidden from other partners and other endpoints', async () => {
    const endpoint = await newEndpoint();
    const other = await newEndpoint();
    const stranger = await api.key();
    const [d] = (await deliver(endpoint, 1)) as [TestDelivery];
    expect(codeOf(await historyOf(endpoint, '', stranger))).toBe('webhook_not_found');
    expect(codeOf(await detailOf(endpoint, d.delivery_id, stranger))).toBe('webhook_not_found');
    expect(codeOf(await retry(endpoint, d.delivery_id, stranger))).toBe('webhook_not_found');
    expect(codeOf(await detailOf(other, d.delivery_id))).toBe('webhook_delivery_not_found');
    expect(codeOf(await retry(other, d.delivery_id))).toBe('webhook_delivery_not_found');
    expect(codeOf(await detailOf(endpoint, 'x'))).toBe('webhook_delivery_not_found');
    expect(codeOf(await historyOf({ ...endpoint, webhook_id: 'x' }))).toBe('webhook_not_found');
  });

  it('ends after 90 days, a deleted endpoint or not', async () => {
    const endpoint = await newEndpoint();
    const made = await oneOfEach(endpoint);
    clock.advance(90 * DAY - 1);
    expect(await listed(endpoint)).toHaveLength(4);
    clock.advance(2);
    expect(await listed(endpoint)).toEqual([]);
    expect(codeOf(await detailOf(endpoint, made.failed.delivery_id))).toBe('webhook_delivery_not_found');
    clock.set(NOON);
  });
});

describe('a retry', () => {
  it('delivers the same event again, once though it is asked for twice at once', async () => {
    const endpoint = await newEndpoint();
    const { delivery_id, event_id } = await sendTest(endpoint);
    await inState(endpoint, delivery_id, 'delivered');
    // Otherwise the second request may come after the delivery, and is a retry of its own.
    const { promise, resolve: release } = Promise.withResolvers<void>();
    answerable = promise;
    const answers = await Promise.all([retry(endpoint, delivery_id), retry(endpoint, delivery_id)]);
    release();
    for (const answer of answers) {
      expect(answer.statusCode, answer.body).toBe(200);
      expect(answer.json()).toMatchObject({ id: delivery_id, event_id, event: { id: event_id } });
    }
    await eventually('it came again', () => received.length === 2);
    const again = await inState(endpoint, delivery_id, 'delivered');
    expect(again.attempts).toBe(2);
    await api.caughtUp();
    expect(received.map(({ id }) => id)).toEqual([event_id, event_id]);
    expect(received[1]?.body).toBe(received[0]?.body);
  });

  it('leaves a pending one as it is, also while its endpoint is paused', async () => {
    const endpoint = await newEndpoint();
    const { pending } = await oneOfEach(endpoint);
    const before = (await detailOf(endpoint, pending.delivery_id)).json();
    for (const paused of [false, true]) {
      if (paused) await pause(endpoint);
      const answer = await retry(endpoint, pending.delivery_id);
      expect(answer.statusCode).toBe(200);
      expect(answer.json()).toEqual({ ...before, request_id: answer.headers['x-request-id'] });
    }
  });

  it('needs an endpoint that is enabled, and a payload that is kept', async () => {
    const endpoint = await newEndpoint();
    const { failed, expired: gone, pending } = await oneOfEach(endpoint);
    // Its payload was never stored.
    expect(codeOf(await retry(endpoint, failed.delivery_id))).toBe('webhook_event_expired');
    expect(codeOf(await retry(endpoint, gone.delivery_id))).toBe('webhook_event_expired');
    await pause(endpoint);
    const refused = await retry(endpoint, failed.delivery_id);
    expect([refused.statusCode, codeOf(refused)]).toEqual([409, 'webhook_disabled']);
    await call(key, 'DELETE', `/${endpoint.webhook_id}`);
    expect(codeOf(await retry(endpoint, pending.delivery_id))).toBe('webhook_disabled');
  });

  it('needs a place in the queue', async () => {
    const endpoint = await newEndpoint();
    const { delivery_id } = await sendTest(endpoint);
    await inState(endpoint, delivery_id, 'delivered');
    const now = clock.now();
    const ds = Array.from({ length: 60 }, () => aDelivery(endpoint));
    await append(...ds.flatMap((d) => [queued(d, now), attempted(d, { at: now, error: 'timeout' })]));
    const refused = await eventually(
      'it is full',
      () => retry(endpoint, delivery_id),
      (answer) => answer.statusCode === 503,
    );
    expect(codeOf(refused)).toBe('webhook_queue_full');
    expect(refused.headers['retry-after']).toMatch(/^\d+$/);
  });
});
