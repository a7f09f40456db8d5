import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR, secondsToNextDay } from '../../domain/kernel/time.ts';
import { OutcomeUnknown } from '../../event-store/port.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { faultyStore } from '../support/faulty-store.ts';
import { aCompany, record, scriptedProvider } from '../support/providers.ts';

const clock = manualClock();
const faults = faultyStore();
const near = scriptedProvider('near');
const far = scriptedProvider('far');
let api: TestApi;
let key: Key;

beforeAll(async () => {
  api = await startApi({ clock, providers: [near, far], aroundStore: faults.around });
  key = await api.key();
});
afterAll(() => api.close());

/** Saves a company for an address and lets it become stale. */
const staleResult = async (ip: string): Promise<void> => {
  near.says(ip, aCompany('Old'));
  await api.post(key, ip);
  await api.settled(key, ip);
  clock.advance(30 * DAY);
};

const refreshOf = (answer: { json(): { refresh_status: string; refresh_error: string | null } }) => {
  const { refresh_status, refresh_error } = answer.json();
  return [refresh_status, refresh_error];
};

/** Lets the attempts on an address fail, one after the other, until the work is given up. */
const failAll = async (ip: string, attempts: number): Promise<void> => {
  for (let n = 1; n <= attempts; n += 1) {
    await eventually(`attempt ${n} is known`, async () => {
      const { rows } = await api.sql.query('select attempts from read.enrichment_work where ip = $1', [ip]);
      return (rows[0]?.attempts ?? attempts) === n;
    });
    clock.advance(2 * HOUR);
  }
};

describe('a stale result', () => {
  it('keeps its fields, is shown as stale, and a GET starts nothing', async () => {
    await staleResult('5.5.0.1');
    for (let n = 0; n < 2; n += 1) {
      const answer = await api.get(key, '5.5.0.1');
      expect(answer.statusCode).toBe(200);
      expect(answer.json()).toMatchObject({ stale: true, company_found: true, company: { name: 'Old' } });
      expect(refreshOf(answer)).toEqual(['not_requested', null]);
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(answer.headers).not.toHaveProperty('retry-after');
    }
    expect(near.asked('5.5.0.1')).toBe(1);
  });

  it('is refreshed by a POST: 200 and pending, then fresh', async () => {
    await staleResult('5.5.0.2');
    near.says('5.5.0.2', 'hangs');
    const posted = await api.post(key, '5.5.0.2');
    expect([posted.statusCode, ...refreshOf(posted)]).toEqual([200, 'pending', null]);
    expect(posted.json()).toMatchObject({ stale: true, company: { name: 'Old' } });
    expect(posted.headers).toMatchObject({ 'retry-after': '15', 'cache-control': 'no-store' });
    const polled = await api.get(key, '5.5.0.2');
    expect(refreshOf(polled)).toEqual(['pending', null]);
    expect(polled.headers['retry-after']).toBe('15');
  });

  it('is fresh and new when the refresh has completed', async () => {
    await staleResult('5.5.0.3');
    near.says('5.5.0.3', aCompany('New'));
    await api.post(key, '5.5.0.3');
    const answer = await eventually(
      'the refresh has completed',
      () => api.get(key, '5.5.0.3'),
      (got) => got.json().stale === false,
    );
    expect(refreshOf(answer)).toEqual(['not_needed', null]);
    expect(answer.json()).toMatchObject({ company: { name: 'New' } });
    expect(Date.parse(answer.json().enriched_at)).toBe(clock.now());
  });

  it('is deferred with lookup_failed after five failed attempts, until the next POST', async () => {
    await staleResult('5.5.0.4');
    near.says('5.5.0.4', 'fails');
    await api.post(key, '5.5.0.4');
    await failAll('5.5.0.4', 5);
    const given = await eventually(
      'the refresh was given up',
      () => api.get(key, '5.5.0.4'),
      (got) => got.json().refresh_status === 'deferred',
    );
    expect(refreshOf(given)).toEqual(['deferred', 'lookup_failed']);
    expect(given.json()).toMatchObject({ stale: true, company: { name: 'Old' } });
    expect(given.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    near.says('5.5.0.4', 'hangs');
    expect(refreshOf(await api.post(key, '5.5.0.4'))).toEqual(['pending', null]);
  });

  it.each([
    ['pending_limit', { pending_enrichments: 0 }],
    ['enrichment_limit', { new_enrichments_per_day: 0 }],
  ] as const)('is deferred with %s, which only the POST shows', async (code, limits) => {
    const ip = code === 'pending_limit' ? '5.5.1.1' : '5.5.1.2';
    await staleResult(ip);
    const limited = await api.key(limits);
    const posted = await api.post(limited, ip);
    expect([posted.statusCode, ...refreshOf(posted)]).toEqual([200, 'deferred', code]);
    const retryAfter = code === 'pending_limit' ? '15' : String(secondsToNextDay(clock.now()));
    expect(posted.headers['retry-after']).toBe(retryAfter);
    expect(posted.json().company.name).toBe('Old');
    expect(refreshOf(await api.get(limited, ip))).toEqual(['not_requested', null]);
  });

  it('is deferred with submission_unconfirmed when only the reservation stands', async () => {
    await staleResult('5.5.1.3');
    faults.failAppends('enrichment-', () => new OutcomeUnknown('no answer'));
    const posted = await api.post(key, '5.5.1.3');
    expect([posted.statusCode, ...refreshOf(posted)]).toEqual([200, 'deferred', 'submission_unconfirmed']);
    expect(posted.headers['retry-after']).toBe('15');
    expect((await api.usage(key)).json().enrichment.submission_unconfirmed).toBe(1);
    faults.heal();
    near.says('5.5.1.3', 'hangs');
    expect(refreshOf(await api.post(key, '5.5.1.3'))).toEqual(['pending', null]);
    expect((await api.usage(key)).json().enrichment.submission_unconfirmed).toBe(0);
  });
});

describe('a partial result, to which a provider could not contribute', () => {
  const isp = record({ match_type: 'isp', network: { is_isp: true } });

  it('is 200 and fresh, and a POST requests the rest', async () => {
    near.says('5.6.0.1', isp);
    far.says('5.6.0.1', 'fails');
    await api.post(key, '5.6.0.1');
    const partial = await api.settled(key, '5.6.0.1');
    expect(partial.json()).toMatchObject({ match_type: 'isp', stale: false });
    expect(refreshOf(partial)).toEqual(['not_requested', null]);

    far.says('5.6.0.1', 'hangs');
    const posted = await api.post(key, '5.6.0.1');
    expect([posted.statusCode, ...refreshOf(posted)]).toEqual([200, 'pending', null]);
    expect(posted.json()).toMatchObject({ match_type: 'isp', stale: false });
  });

  it('becomes a company when the rest says so', async () => {
    near.says('5.6.0.2', isp);
    far.says('5.6.0.2', 'fails');
    await api.post(key, '5.6.0.2');
    await api.settled(key, '5.6.0.2');
    far.says('5.6.0.2', aCompany('Found'));
    await api.post(key, '5.6.0.2');
    const answer = await eventually(
      'the rest has come',
      () => api.get(key, '5.6.0.2'),
      (got) => got.json().match_type === 'company',
    );
    expect(refreshOf(answer)).toEqual(['not_needed', null]);
  });

  it('counts as complete after five attempts that failed', async () => {
    near.says('5.6.0.3', isp);
    far.says('5.6.0.3', 'fails');
    await api.post(key, '5.6.0.3');
    await api.settled(key, '5.6.0.3');
    await api.post(key, '5.6.0.3');
    await failAll('5.6.0.3', 5);
    const answer = await eventually(
      'the completion was given up',
      () => api.get(key, '5.6.0.3'),
      (got) => got.json().refresh_status === 'not_needed',
    );
    expect(answer.json()).toMatchObject({ match_type: 'isp', stale: false });
    expect(refreshOf(await api.post(key, '5.6.0.3'))).toEqual(['not_needed', null]);
  });
});
