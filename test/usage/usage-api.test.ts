import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HOUR, MINUTE } from '../../domain/kernel/time.ts';
import { type Key, manualClock, NOON, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, record, scriptedProvider } from '../support/providers.ts';

const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let key: Key;

beforeAll(async () => {
  provider.says('5.9.0.1', aCompany('Counted'));
  provider.says('5.9.0.2', record({ match_type: 'isp', network: { is_isp: true } }));
  provider.says('5.9.0.3', record({ match_type: 'unclassified' }));
  api = await startApi({ clock, providers: [provider] });
  const stranger = await api.key();
  for (const ip of ['5.9.0.1', '5.9.0.2', '5.9.0.3']) {
    await api.post(stranger, ip);
    await api.settled(stranger, ip);
  }
});
beforeEach(async () => {
  key = await api.key({ requests_per_second: 50, pending_enrichments: 9, new_enrichments_per_day: 8 });
});
afterAll(() => api.close());

const bodyOf = async (query = '') => (await api.usage(key, query)).json();
const raw = (payload: string, headers: Record<string, string> = {}) =>
  api.inject(key, {
    method: 'POST',
    url: '/v1/lookup',
    payload,
    headers: { 'content-type': 'application/json', ...headers },
  });

describe('usage', () => {
  it('of a key that did nothing is zero, for today', async () => {
    const answer = await api.usage(key);
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.json()).toMatchObject({
      key_id: key.key_id,
      name: expect.stringMatching(/^key /),
      from: '2026-03-14T00:00:00.000Z',
      to: '2026-03-15T00:00:00.000Z',
      timezone: 'UTC',
      limits: { requests_per_second: 50, new_enrichments_per_day: 8, pending_enrichments: 9 },
      totals: { requests: 0, cache_hits: 0, average_processing_ms: 0 },
      hourly: [],
      enrichment: { pending: 0, submission_unconfirmed: 0, retrying: 0, oldest_pending_at: null },
    });
    expect(Object.values(answer.json().outcomes)).toEqual(Array(9).fill(0));
    expect(answer.json()).not.toHaveProperty('reveals');
    expect(answer.json().accounting).toContain('usage_unavailable');
  });

  it('counts each answer once, by its outcome, as soon as it was received', async () => {
    provider.says('5.9.1.1', 'hangs');
    provider.says('5.9.1.2', 'fails');
    for (const ip of ['5.9.0.1', '5.9.0.1', '5.9.0.2', '5.9.0.3']) await api.get(key, ip);
    await api.post(key, '5.9.0.1');
    await api.post(key, '5.9.1.1');
    await api.post(key, '5.9.1.1');
    await api.get(key, '5.9.1.1');
    await api.get(key, '5.9.1.9');
    await raw('{');
    await raw('{"x":1}');
    await raw('{"ip":"10.0.0.1"}');
    await raw('{"ip":"8.8.8.8"}', { 'content-encoding': 'gzip' });
    await raw('x', { 'content-type': 'text/plain' });
    await raw(' '.repeat(1_025));
    await api.inject(key, { method: 'GET', url: '/v1/lookup' });
    expect((await bodyOf()).outcomes).toEqual({
      company: 3,
      isp: 1,
      unclassified: 1,
      enqueued: 1,
      pending: 2,
      retrying: 0,
      invalid_request: 7,
      rate_limited: 0,
      error: 1,
    });
    expect((await bodyOf()).totals).toMatchObject({ requests: 16, cache_hits: 5 });

    await api.post(key, '5.9.1.2');
    await eventually('an attempt has failed', async () => (await bodyOf()).enrichment.retrying === 1);
    await api.get(key, '5.9.1.2');
    expect((await bodyOf()).outcomes).toMatchObject({ enqueued: 2, retrying: 1 });
  });

  it('counts every 429 as rate_limited', async () => {
    const slow = await api.key({ requests_per_second: 2, new_enrichments_per_day: 0 });
    await api.post(slow, '5.9.2.1');
    await api.get(slow, '5.9.0.1');
    await api.get(slow, '5.9.0.1');
    await api.post(slow, '5.9.0.1');
    clock.advance(1_000);
    const { outcomes, totals } = (await api.usage(slow)).json();
    expect([outcomes.rate_limited, outcomes.company, totals.requests]).toEqual([3, 1, 4]);
  });

  it('does not count other requests than lookups of the key: other paths, methods, long URLs, wrong keys', async () => {
    await api.usage(key);
    await api.usage(key, 'from=never');
    await api.inject(key, { method: 'GET', url: '/v1/nothing' });
    await api.inject(key, { method: 'DELETE', url: '/v1/lookup' });
    await api.inject(key, { method: 'GET', url: `/v1/lookup?ip=${'1'.repeat(600)}` });
    await api.inject(key, { method: 'GET', url: '/healthz' });
    await api.inject({ ...key, api_key: `${key.api_key}x` }, { method: 'GET', url: '/v1/lookup?ip=5.9.0.1' });
    expect((await bodyOf()).totals.requests).toBe(0);
  });

  it('is of the calling key alone, the enrichment snapshot of its partner', async () => {
    const sibling = await api.key({}, key.partner_id);
    provider.says('5.9.3.1', 'hangs');
    await api.post(sibling, '5.9.3.1');
    const body = await bodyOf();
    expect(body.totals.requests).toBe(0);
    expect(body.enrichment).toMatchObject({
      pending: 1,
      oldest_pending_at: new Date(clock.now()).toISOString(),
    });
  });

  it('is sorted by hour, then outcome, and holds only hours with requests', async () => {
    clock.set(NOON);
    for (const hours of [0, 2, 26]) {
      clock.set(NOON + hours * HOUR);
      await api.get(key, '5.9.0.1');
      await api.get(key, '5.9.9.9');
    }
    const body = await bodyOf('from=2026-03-14&to=2026-03-16');
    const hours = ['2026-03-14T12', '2026-03-14T14', '2026-03-15T14'].map((hour) => `${hour}:00:00.000Z`);
    expect(body.hourly.map(({ hour, outcome }: Record<string, string>) => [hour, outcome])).toEqual(
      hours.flatMap((hour) => [
        [hour, 'company'],
        [hour, 'error'],
      ]),
    );
    for (const row of body.hourly)
      expect(row).toMatchObject({ requests: 1, duration_ms: expect.any(Number) });
    expect(body.hourly.map(({ cache_hits }: { cache_hits: number }) => cache_hits)).toEqual([
      1, 0, 1, 0, 1, 0,
    ]);
    expect((await bodyOf('from=2026-03-15&to=2026-03-16')).totals.requests).toBe(2);
    expect((await bodyOf('from=2026-03-15')).totals.requests).toBe(2);
    expect((await bodyOf('from=2026-03-13&to=2026-03-14')).totals.requests).toBe(0);
    clock.set(NOON);
  });

  it('tells the least recently attempted of the unfinished', async () => {
    provider.says('5.9.4.1', 'fails');
    provider.says('5.9.4.2', 'fails');
    const attempted = (count: number) =>
      eventually('attempts have failed', async () => (await bodyOf()).enrichment.retrying === count);
    await api.post(key, '5.9.4.1');
    await attempted(1);
    const first = clock.now();
    clock.advance(1_000);
    await api.post(key, '5.9.4.2');
    await attempted(2);
    const { enrichment } = await bodyOf();
    expect(enrichment.oldest_checked_at).toBe(new Date(first).toISOString());
    clock.advance(MINUTE);
  });
});

describe('usage that is not known exactly', () => {
  it('is usage_unavailable while the read models are behind, and complete again after that', async () => {
    const blocker = await api.sql.connect();
    await blocker.query('begin; lock table read.projection in exclusive mode');
    await api.get(key, '5.9.0.1');
    const behind = await api.usage(key);
    await blocker.query('commit');
    blocker.release();
    expect([behind.statusCode, behind.json().error.code]).toEqual([503, 'usage_unavailable']);
    expect(behind.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect((await bodyOf()).totals.requests).toBe(1);
  });
});
