import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, MINUTE } from '../../domain/kernel/time.ts';
import { type Key, manualClock, NOON, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, record, scriptedProvider } from '../support/providers.ts';

const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let key: Key;

beforeAll(async () => {
  api = await startApi({ clock, providers: [provider] });
  key = await api.key();
});
afterAll(() => api.close());

const iso = (ms: number) => new Date(ms).toISOString();
const codeOf = (answer: { json(): { error: { code: string } } }) => answer.json().error.code;
const NOTHING = { connection_type: null, audience_type: null, audience_group: null, detail_level: null };

describe('a lookup of an unknown address', () => {
  it('is 404 not_requested for a GET, which starts nothing', async () => {
    for (let n = 0; n < 2; n += 1) {
      const answer = await api.get(key, '5.1.0.1');
      expect([answer.statusCode, codeOf(answer)]).toEqual([404, 'not_requested']);
      expect(answer.headers['cache-control']).toBe('no-store');
    }
    expect(provider.asked('5.1.0.1')).toBe(0);
    expect((await api.usage(key)).json().enrichment.pending).toBe(0);
  });

  it('is 202 for a POST, with where and when to poll', async () => {
    provider.says('5.1.0.2', 'hangs');
    const answer = await api.post(key, '5.1.0.2');
    expect(answer.statusCode).toBe(202);
    expect(answer.json()).toEqual({
      ip: '5.1.0.2',
      lookup_ip: '5.1.0.2',
      status: 'pending',
      company_found: null,
      company: null,
      submitted_at: iso(NOON),
      attempts: 0,
      next_retry_at: null,
      last_error: null,
      status_url: '/v1/lookup?ip=5.1.0.2',
      poll_after_seconds: 15,
      request_id: answer.headers['x-request-id'],
    });
    expect(answer.headers).toMatchObject({
      location: '/v1/lookup?ip=5.1.0.2',
      'retry-after': '15',
      'cache-control': 'no-store',
    });
  });

  it('is pending for the next GET already, and for a repeated POST, which starts no second work', async () => {
    provider.says('5.1.0.3', 'hangs');
    const first = await api.post(key, '5.1.0.3');
    const polled = await api.inject(key, { method: 'GET', url: first.json().status_url });
    expect(polled.statusCode).toBe(202);
    clock.advance(1_000);
    const again = await api.post(key, '5.1.0.3');
    expect(again.statusCode).toBe(202);
    expect(again.json().submitted_at).toBe(first.json().submitted_at);
    await eventually('the provider is asked', () => provider.asked('5.1.0.3') === 1);
    await api.caughtUp();
    const { rows } = await api.sql.query(`select count(*)::int n from read.reservation where ip = '5.1.0.3'`);
    expect(rows).toEqual([{ n: 1 }]);
  });

  it('becomes one reservation when twenty callers ask at once', async () => {
    const second = await api.key({}, key.partner_id);
    provider.says('5.1.0.4', 'hangs');
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => api.post(n % 2 === 0 ? key : second, '5.1.0.4')),
    );
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(20).fill(202));
    await api.caughtUp();
    const { rows } = await api.sql.query(`select count(*)::int n from read.reservation where ip = '5.1.0.4'`);
    expect(rows).toEqual([{ n: 1 }]);
  });
});

describe('a completed lookup', () => {
  it('of a company is 200 with all fields, may be kept a minute, and is fresh for 30 days', async () => {
    const company = { name: 'Acme', employees: '10001+', annual_revenue: 5_000_000 };
    provider.says('5.2.0.1', record({ match_type: 'company', company, network: { is_isp: false } }));
    const at = clock.now();
    await api.post(key, '5.2.0.1');
    const answer = await api.settled(key, '5.2.0.1');
    const body = answer.json();
    expect(body).toMatchObject({
      ip: '5.2.0.1',
      matched_ip: '5.2.0.1',
      status: 'complete',
      match_type: 'company',
      company_found: true,
      enriched_at: iso(at),
      stale: false,
      fresh_until: iso(at + 30 * DAY),
      refresh_status: 'not_needed',
      refresh_error: null,
      network: { ...NOTHING, is_isp: false },
      company: { ...company, website: null, country_code: null },
      request_id: answer.headers['x-request-id'],
    });
    expect(Object.keys(body.company)).toHaveLength(16);
    expect(body).not.toHaveProperty('company_signals');
    expect(answer.headers['cache-control']).toBe('private, max-age=60');
    expect(answer.headers.vary).toBe('authorization');
    expect(answer.headers).not.toHaveProperty('retry-after');
  });

  it.each([
    ['isp', record({ match_type: 'isp', network: { is_isp: true }, company: { name: 'Telco' } }), 7],
    ['unclassified', record({ match_type: 'unclassified' }), 7],
    ['company', aCompany('Short', { fresh_for_days: 2 }), 2],
  ])('of %s is fresh for so many days as it should', async (match_type, answer, days) => {
    const ip = `5.2.1.${days + match_type.length}`;
    provider.says(ip, answer);
    await api.post(key, ip);
    const body = (await api.settled(key, ip)).json();
    expect(body).toMatchObject({ match_type, company_found: match_type === 'company' });
    expect(Date.parse(body.fresh_until) - Date.parse(body.enriched_at)).toBe(days * DAY);
    // All available company fields, also for an ISP; null only when there is none.
    expect(body.company?.name ?? null).toBe(answer.company?.name ?? null);
  });

  it('is unclassified and empty when no provider knows the address', async () => {
    await api.post(key, '5.2.2.1');
    const body = (await api.settled(key, '5.2.2.1')).json();
    expect(body).toMatchObject({ match_type: 'unclassified', company_found: false, company: null });
    expect(body.network).toEqual({ ...NOTHING, is_isp: null });
  });

  it('serves every partner, POST or GET, and starts no work', async () => {
    const other = await api.key();
    provider.says('5.2.3.1', aCompany('Shared'));
    await api.post(key, '5.2.3.1');
    await api.settled(key, '5.2.3.1');
    expect((await api.get(other, '5.2.3.1')).json().company.name).toBe('Shared');
    expect((await api.post(other, '5.2.3.1')).json().refresh_status).toBe('not_needed');
    expect(provider.asked('5.2.3.1')).toBe(1);
  });
});

describe('an attempt that fails', () => {
  it('makes the lookup retrying, with a next attempt, and is no negative match', async () => {
    provider.says('5.3.0.1', 'fails');
    await api.post(key, '5.3.0.1');
    const retrying = await eventually(
      'an attempt has failed',
      () => api.get(key, '5.3.0.1'),
      (answer) => answer.json().status === 'retrying',
    );
    expect(retrying.statusCode).toBe(202);
    expect(retrying.json()).toMatchObject({
      company_found: null,
      attempts: 1,
      last_error: 'lookup_failed',
      poll_after_seconds: 15,
    });
    const delay = Date.parse(retrying.json().next_retry_at) - clock.now();
    expect(delay).toBeGreaterThanOrEqual(12_000);
    expect(delay).toBeLessThanOrEqual(18_000);

    provider.says('5.3.0.1', aCompany('Late'));
    clock.advance(MINUTE);
    expect((await api.settled(key, '5.3.0.1')).json().company.name).toBe('Late');
  });
});

describe('a lookup whose work has ended in the log, but not in the read models yet', () => {
  let other: TestApi;
  beforeAll(async () => {
    const database = { url: api.runtime.databaseUrl, drop: async () => undefined };
    other = await startApi({ clock, database, workers: false });
  });
  afterAll(() => other.close());

  /** Keeps the projections from writing, but not readers from reading, while the work runs. */
  const whileBehind = async (work: () => Promise<void>): Promise<void> => {
    const blocker = new pg.Client({ connectionString: api.runtime.databaseUrl });
    await blocker.connect();
    await blocker.query('begin; lock table read.enrichment_work in share mode');
    await work().finally(() => blocker.end());
  };

  it('is 200 for a GET by another process after a POST has been answered with 200, not 202', async () => {
    const ip = '5.1.9.1';
    provider.says(ip, 'fails');
    expect((await api.post(key, ip)).statusCode).toBe(202);
    await eventually(
      'the failed attempt is known',
      () => api.get(key, ip),
      (answer) => answer.json().attempts === 1,
    );
    provider.says(ip, aCompany('Late'));
    clock.advance(5 * MINUTE);
    let get: ReturnType<TestApi['get']> | null = null;
    let isAnswered = false;
    await whileBehind(async () => {
      await eventually(
        'a POST is answered from the stream',
        () => api.post(key, ip),
        (answer) => answer.statusCode === 200,
      );
      get = other.get(key, ip).finally(() => {
        isAnswered = true;
      });
      const { progress, store } = other.runtime;
      expect(await progress.reached(['lookups'], await store.head(), 500)).toBe(false);
      expect(isAnswered).toBe(false);
    });
    const answer = await (get as ReturnType<TestApi['get']> | null);
    expect(answer?.statusCode).toBe(200);
  });
});
