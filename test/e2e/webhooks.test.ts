import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { freePort } from '../../cli/installation/free-port.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { type Received, type Receiver, startReceiver } from '../support/receiver.ts';
import type { Service } from '../support/service.ts';
import { startServiceOnDatabase } from '../support/service-on-database.ts';
import { describeOnStores } from '../support/stores.ts';
import {
  type AllowedReceivers,
  allowReceivers,
  type PartnerWebhooks,
  type SentEvent,
  type TestWebhook,
  verified,
  webhooksOf,
} from '../support/webhook-sink.ts';

const PAGE = 'https://www.example.com';
/** An address of the sample directory: Google. */
const VISITOR = '8.8.8.8';
const DELIVERED_MS = 20_000;
const PUBLIC_NAME = 'hooks.example.com';
const PRIVATE_NAME = 'private.example.com';
/** A loopback address that the service is not allowed to call. */
const PRIVATE = '127.0.0.2';

describeOnStores('webhooks', (env) => {
  let allowed: AllowedReceivers;
  let dns: DnsServer;
  let service: Service;
  let key: string;
  let webhooks: PartnerWebhooks;
  let port: number;
  /** The port of a receiver that is down until a test starts it. */
  let downPort: number;
  let sink: Receiver;
  /** Each test's receiver is a separate path. */
  let path: string;
  let tracker: string;
  /** The receiver's answer to its n-th request, from 1; 204 otherwise. */
  let answers: (n: number) => { status: number; headers?: Record<string, string> };

  beforeAll(async () => {
    [port, downPort] = await Promise.all([freePort(), freePort()]);
    allowed = await allowReceivers([port, downPort], [PUBLIC_NAME, PRIVATE_NAME]);
    sink = await startReceiver({
      tls: allowed.tls,
      port,
      answer: (request, response) => {
        const { status, headers } = answers(at(request.path).length);
        response.writeHead(status, headers).end();
      },
    });
    dns = await startDnsServer((type, name) => {
      if (type === 'AAAA') return [];
      return name === PUBLIC_NAME ? ['127.0.0.1'] : name === PRIVATE_NAME ? [PRIVATE] : 'NXDOMAIN';
    });
    service = await startServiceOnDatabase({
      env: {
        ...env,
        ...allowed.env,
        RETRY_BASE_SECONDS: '0.2',
        NODE_OPTIONS: `--import=${import.meta.resolve('../support/resolve-with.ts')}`,
        TEST_DNS_SERVER: dns.resolver.getServers()[0] ?? '',
      },
    });
    key = (await service.newKey({ requests_per_second: 100_000 })).api_key;
    webhooks = webhooksOf(service, key);
  }, 90_000);
  afterAll(async () => {
    await service?.remove();
    await sink?.close();
    dns?.close();
    allowed?.remove();
  });

  beforeEach(async () => {
    path = `/${randomUUID()}`;
    answers = () => ({ status: 204 });
    const body = { name: 'a site', origins: [PAGE], customer_reference: 'customer-42' };
    const made = await service.call('POST', '/v1/trackers', { key, body });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    tracker = made.body.id;
  });
  afterEach(async () => {
    for (const { id } of (await webhooks.ask('GET', '', 200)).webhooks)
      await webhooks.ask('DELETE', `/${id}`, 200);
  });

  const at = (path: string): Received[] => sink.requests.filter((request) => request.path === path);
  const url = (where = path, onPort = port) => `https://127.0.0.1:${onPort}${where}`;
  const endpoint = (where = url(), events?: string[]) => webhooks.create(where, tracker, events);
  /** Waits for the given number of requests at this test's path. */
  const received = (count: number): Promise<Received[]> =>
    eventually(
      `${count} requests`,
      () => at(path),
      (requests) => requests.length >= count,
      DELIVERED_MS,
    );
  const session = async (ip = VISITOR): Promise<Readonly<Record<string, unknown>>> => {
    const headers = { 'content-type': 'text/plain', origin: PAGE, 'x-forwarded-for': ip };
    const body = {
      tracker_id: tracker,
      token: randomUUID(),
      visit_id: randomUUID(),
      custom: { plan: 'pro' },
    };
    expect((await service.call('POST', '/tracking/collect', { headers, body })).status).toBe(204);
    return (await service.call('GET', `/v1/sessions?tracker_id=${tracker}`, { key })).body.sessions.at(-1);
  };
  const reveal = (sessionId: unknown) =>
    service.call('POST', `/v1/sessions/${sessionId}/reveal`, {
      key,
      headers: { 'idempotency-key': randomUUID() },
    });
  /** A delivered test event: the receiver's request and the history's entry. */
  const testDelivered = async (to: TestWebhook) => {
    const { delivery_id, event_id } = await webhooks.sendTest(to);
    const shown = await webhooks.becomes('delivered', to, delivery_id, ({ state }) => state === 'delivered');
    return {
      event_id,
      shown,
      requests: at(path).filter(({ headers }) => headers['webhook-id'] === event_id),
    };
  };

  it('notify of a test event, a visit and its reveals with a signature, and the history agrees', async () => {
    const hook = await endpoint();
    const { event_id } = await webhooks.sendTest(hook);
    await received(1);
    const visited = await session();
    await received(2);

    const asked = await reveal(visited.session_id);
    expect(asked.status, JSON.stringify(asked.body)).toBe(202);
    // No receipt is read: the reveal completes because an endpoint is subscribed.
    await received(3);
    const again = await reveal(visited.session_id);
    expect(again.status, JSON.stringify(again.body)).toBe(200);
    const requests = await received(4);

    const events = requests.map((request) => verified(request, hook.signing_secret));
    const receipts = [asked, again].map(({ body }) =>
      service.call('GET', `/v1/reveals/${body.reveal_id}`, { key }),
    );
    const [first, second] = (await Promise.all(receipts)).map(
      ({ body: { request_id: _, ...receipt } }) => receipt,
    );
    const envelope = { schema_version: 1, created_at: expect.any(String) };
    expect(events).toEqual([
      { ...envelope, id: event_id, type: 'webhook.test', data: { message: expect.any(String) } },
      { ...envelope, id: `evt_session_${visited.session_id}`, type: 'session.created', data: visited },
      { ...envelope, id: `evt_reveal_${first.reveal_id}`, type: 'reveal.completed', data: first },
      { ...envelope, id: `evt_reveal_${second.reveal_id}`, type: 'reveal.completed', data: second },
    ]);
    expect(visited).toMatchObject({ custom: { plan: 'pro' }, customer_reference: 'customer-42' });
    for (const receipt of [first, second]) {
      expect(receipt).toMatchObject({
        status: 'complete',
        billable_units: 1,
        result: { company_found: true },
      });
    }

    const history = await eventually(
      'all are delivered',
      () => webhooks.history(hook),
      (shown) => shown.every(({ state }) => state === 'delivered'),
      DELIVERED_MS,
    );
    const outcomes = history.toReversed().map(({ event_id, type, attempts, http_status, error }) => ({
      event_id,
      type,
      attempts,
      http_status,
      error,
    }));
    expect(outcomes).toEqual(
      events.map(({ id, type }) => ({ event_id: id, type, attempts: 1, http_status: 204, error: null })),
    );
    const [newest] = history;
    const detail = await webhooks.delivery(hook.id, newest?.id ?? '');
    expect(detail).toMatchObject({ ...newest, event: events[3] });
    expect(await webhooks.totals(hook)).toEqual({
      pending: 0,
      delivered: 4,
      failed: 0,
      cancelled: 0,
      expired: 0,
    });
    expect(at(path)).toHaveLength(4);
  });

  it('are repeated with the same bytes and a new signature when the receiver asks for a later attempt', async () => {
    answers = (n) => (n < 3 ? { status: 503, headers: { 'retry-after': '1' } } : { status: 200 });
    const hook = await endpoint();
    const { event_id, shown, requests } = await testDelivered(hook);
    expect(shown).toMatchObject({ attempts: 3, http_status: 200, error: null, next_attempt_at: null });
    expect(requests).toHaveLength(3);
    for (const request of requests) {
      expect(verified(request, hook.signing_secret).id).toBe(event_id);
      expect(request.body.equals(requests[0]?.body ?? Buffer.of())).toBe(true);
    }
    const times = requests.map(({ headers }) => Number(headers['webhook-timestamp']));
    expect(times[1]).toBeGreaterThan(times[0] ?? 0);
    expect(times[2]).toBeGreaterThan(times[1] ?? 0);
    expect(new Set(requests.map(({ headers }) => headers['webhook-signature'])).size).toBe(3);
  });

  it('wait for a receiver that is down, and never reach a deleted endpoint', async () => {
    const [hook, other] = [await endpoint(url('/stays', downPort)), await endpoint(url('/goes', downPort))];
    const [kept, dropped] = [await webhooks.sendTest(hook), await webhooks.sendTest(other)];
    for (const [to, { delivery_id }] of [
      [hook, kept],
      [other, dropped],
    ] as const) {
      const failed = await webhooks.becomes('it was tried', to, delivery_id, ({ attempts }) => attempts > 0);
      expect(failed).toMatchObject({ state: 'pending', http_status: null, error: 'connect' });
      expect(failed.next_attempt_at).not.toBeNull();
    }
    await webhooks.ask('DELETE', `/${other.id}`, 200);
    const cancelled = await webhooks.delivery(other.id, dropped.delivery_id);
    expect(cancelled).toMatchObject({ state: 'cancelled', next_attempt_at: null });
    expect(await webhooks.totals(other)).toMatchObject({ pending: 0, cancelled: 1 });

    const up = await startReceiver({ tls: allowed.tls, port: downPort });
    try {
      const shown = await webhooks.becomes(
        'it is delivered',
        hook,
        kept.delivery_id,
        ({ state }) => state === 'delivered',
      );
      expect(shown.attempts).toBeGreaterThan(1);
      expect(up.requests.map((request) => request.path)).toEqual(['/stays']);
      expect(verified(up.requests[0] as Received, hook.signing_secret).id).toBe(kept.event_id);
    } finally {
      await up.close();
    }
  });

  it('are repeated under the same event id by a retry', async () => {
    const hook = await endpoint();
    const { event_id, shown } = await testDelivered(hook);
    const retried = await webhooks.ask('POST', `/${hook.id}/deliveries/${shown.id}/retry`, 200, {});
    expect(retried).toMatchObject({ id: shown.id, event_id });
    const requests = await received(2);
    const events: SentEvent[] = requests.map((request) => verified(request, hook.signing_secret));
    expect(new Set(events.map(({ id }) => id))).toEqual(new Set([event_id]));
    expect(requests[1]?.body.equals(requests[0]?.body ?? Buffer.of())).toBe(true);
    await webhooks.becomes(
      'it is delivered again',
      hook,
      shown.id,
      ({ state, attempts }) => state === 'delivered' && attempts === 2,
    );
    expect(await webhooks.history(hook)).toHaveLength(1);
  });

  it('are not sent afterwards for events during a pause', async () => {
    const hook = await endpoint();
    await webhooks.ask('PATCH', `/${hook.id}`, 200, { enabled: false });
    await session('9.9.9.9');
    await webhooks.ask('PATCH', `/${hook.id}`, 200, { enabled: true });
    const { session_id } = await session('1.1.1.1');
    const [request] = await received(1);
    expect(verified(request as Received, hook.signing_secret).id).toBe(`evt_session_${session_id}`);
    expect(await webhooks.history(hook)).toHaveLength(1);
    expect(at(path)).toHaveLength(1);
  });

  it('are signed with both secrets during the overlap of a rotation', async () => {
    const hook = await endpoint();
    const rotated: TestWebhook = await webhooks.ask('POST', `/${hook.id}/rotate-secret`, 200, {});
    expect(rotated.signing_secret).not.toBe(hook.signing_secret);
    const { event_id, requests } = await testDelivered(hook);
    for (const { signing_secret } of [hook, rotated]) {
      expect(verified(requests[0] as Received, signing_secret).id).toBe(event_id);
    }
    expect(String(requests[0]?.headers['webhook-signature'])).toMatch(/^v1,\S{44} v1,\S{44}$/);
    const refused = await webhooks.ask('POST', `/${hook.id}/rotate-secret`, 409, {});
    expect(refused.error.code).toBe('webhook_rotation_pending');
  });

  it('never follow a redirect', async () => {
    const target = `/${randomUUID()}`;
    answers = () => ({ status: 307, headers: { location: url(target) } });
    const hook = await endpoint();
    const { delivery_id } = await webhooks.sendTest(hook);
    const shown = await webhooks.becomes(
      'it was tried twice',
      hook,
      delivery_id,
      ({ attempts }) => attempts > 1,
    );
    expect(shown).toMatchObject({ state: 'pending', http_status: 307, error: 'redirect' });
    expect(at(target)).toEqual([]);
  });

  it('reach a name whose addresses are all allowed, and no name with another address', async () => {
    const hidden = await startReceiver({ tls: allowed.tls, host: PRIVATE, port });
    try {
      const named = await endpoint(`https://${PUBLIC_NAME}:${port}${path}`);
      const { requests } = await testDelivered(named);
      expect(requests).toMatchObject([{ servername: PUBLIC_NAME }]);

      const blocked = await endpoint(`https://${PRIVATE_NAME}:${port}${path}`);
      const { delivery_id } = await webhooks.sendTest(blocked);
      const shown = await webhooks.becomes(
        'it was tried twice',
        blocked,
        delivery_id,
        ({ attempts }) => attempts > 1,
      );
      expect(shown).toMatchObject({ state: 'pending', http_status: null, error: 'blocked_address' });
      expect(await hidden.connections()).toBe(0);
    } finally {
      await hidden.close();
    }
  });
});
