import { describe, expect, it } from 'vitest';
import { endpoints } from '../../../clients/typescript/src/generated.ts';
import type { Client } from '../../../clients/typescript/src/index.ts';
import { answer, fakeService } from './fakes.ts';

const [tracker, domain, session, reveal, webhook, delivery] = ['t 1', 'd1', 's1', 'r1', 'w1', 'l1'] as const;
const KEY = 'a-key';
const range = { from: '2026-03-14', to: '2026-03-15' };
const page = { entries: [], sessions: [], deliveries: [], next_cursor: '', has_more: false };
const { create, update } = { create: { name: 'x', origins: [] }, update: { enabled: false } };
const hook = { name: 'x', url: 'https://example.com/', events: ['session.created' as const] };

const toTheEnd = async (feed: AsyncIterable<unknown>) => {
  for await (const _ of feed);
};

/** Every operation for a key, by the client's method, with its path. */
const calls: Record<keyof typeof endpoints, [(client: Client) => Promise<unknown>, string, body?: object]> = {
  requestLookup: [(c) => c.requestLookup('2001:db8::1'), 'POST /v1/lookup', { ip: '2001:db8::1' }],
  readLookup: [(c) => c.readLookup('2001:db8::1'), 'GET /v1/lookup?ip=2001%3Adb8%3A%3A1'],
  readUsage: [(c) => c.usage(range), 'GET /v1/usage?from=2026-03-14&to=2026-03-15'],
  readLedger: [(c) => toTheEnd(c.ledger({ month: '2026-03' })), 'GET /v1/ledger?month=2026-03&limit=100'],
  listTrackers: [(c) => c.trackers.list(), 'GET /v1/trackers'],
  createTracker: [(c) => c.trackers.create(create), 'POST /v1/trackers', create],
  updateTracker: [
    (c) => c.trackers.update(tracker, { name: 'y' }),
    'PATCH /v1/trackers/t%201',
    { name: 'y' },
  ],
  disableTracker: [(c) => c.trackers.disable(tracker), 'DELETE /v1/trackers/t%201'],
  enableTracker: [(c) => c.trackers.enable(tracker), 'POST /v1/trackers/t%201/enable'],
  deleteTracker: [(c) => c.trackers.delete(tracker), 'POST /v1/trackers/t%201/delete'],
  readTrackerUsage: [
    (c) => c.trackers.usage(tracker, { from: range.from }),
    'GET /v1/trackers/t%201/usage?from=2026-03-14',
  ],
  listDomains: [(c) => c.domains.list(tracker), 'GET /v1/trackers/t%201/domains'],
  createDomain: [
    (c) => c.domains.create(tracker, { hostname: 'h' }),
    'POST /v1/trackers/t%201/domains',
    { hostname: 'h' },
  ],
  getDomain: [(c) => c.domains.get(tracker, domain), 'GET /v1/trackers/t%201/domains/d1'],
  deleteDomain: [(c) => c.domains.delete(tracker, domain), 'DELETE /v1/trackers/t%201/domains/d1'],
  listSessions: [
    (c) => toTheEnd(c.sessions({ trackerId: tracker, cursor: 'c', limit: 9 })),
    'GET /v1/sessions?tracker_id=t+1&cursor=c&limit=9',
  ],
  previewSession: [(c) => c.session(session), 'GET /v1/sessions/s1'],
  revealSession: [(c) => c.requestReveal(session, KEY), 'POST /v1/sessions/s1/reveal'],
  getReveal: [(c) => c.readReveal(reveal), 'GET /v1/reveals/r1'],
  listWebhooks: [(c) => c.webhooks.list(), 'GET /v1/webhooks'],
  createWebhook: [(c) => c.webhooks.create(hook), 'POST /v1/webhooks', hook],
  getWebhook: [(c) => c.webhooks.get(webhook), 'GET /v1/webhooks/w1'],
  updateWebhook: [(c) => c.webhooks.update(webhook, update), 'PATCH /v1/webhooks/w1', update],
  deleteWebhook: [(c) => c.webhooks.delete(webhook), 'DELETE /v1/webhooks/w1'],
  rotateWebhookSecret: [(c) => c.webhooks.rotateSecret(webhook), 'POST /v1/webhooks/w1/rotate-secret'],
  testWebhook: [(c) => c.webhooks.test(webhook), 'POST /v1/webhooks/w1/test'],
  listWebhookDeliveries: [
    (c) => toTheEnd(c.webhooks.deliveries(webhook, { status: 'failed', cursor: 'c' })),
    'GET /v1/webhooks/w1/deliveries?status=failed&cursor=c',
  ],
  getWebhookDelivery: [(c) => c.webhooks.delivery(webhook, delivery), 'GET /v1/webhooks/w1/deliveries/l1'],
  retryWebhookDelivery: [
    (c) => c.webhooks.retryDelivery(webhook, delivery),
    'POST /v1/webhooks/w1/deliveries/l1/retry',
  ],
  recoverWebhook: [
    (c) => c.webhooks.recover(webhook, new Date(0)),
    'POST /v1/webhooks/w1/recover',
    { since: '1970-01-01T00:00:00.000Z' },
  ],
  getWebhookRecovery: [(c) => c.webhooks.recovery(webhook, 'r1'), 'GET /v1/webhooks/w1/recoveries/r1'],
  readHealth: [(c) => c.health(), 'GET /healthz'],
};

describe('the client calls', () => {
  it.each(Object.entries(calls))('%s', async (id, [call, line, body]) => {
    const { client, until, asked } = fakeService([answer(200, page)]);
    await until(call(client));
    expect(asked.map(({ method, url }) => `${method} ${url}`)).toEqual([line]);
    expect(asked[0]?.body).toEqual(body);
    expect(asked[0]?.headers['content-type']).toBe(body && 'application/json');
    expect(asked[0]?.headers['Idempotency-Key']).toBe(id === 'revealSession' ? KEY : undefined);
  });

  it('every operation of the OpenAPI document that accepts a key', () => {
    expect(Object.keys(calls).sort()).toEqual(Object.keys(endpoints).sort());
  });
});
