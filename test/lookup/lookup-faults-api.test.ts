import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { OutcomeUnknown, StoreBusy, StoreUnavailable } from '../../event-store/port.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { faultyStore } from '../support/faulty-store.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';

const clock = manualClock();
const faults = faultyStore();
const provider = scriptedProvider();
let api: TestApi;
let key: Key;

beforeAll(async () => {
  provider.saysOtherwise('hangs');
  api = await startApi({ clock, providers: [provider], aroundStore: faults.around });
  key = await api.key();
});
afterEach(() => faults.heal());
afterAll(() => api.close());

const FIXED = 'Service temporarily unavailable; retry later';

/** Checks that an answer is the 503 of this code, and gives its Retry-After. */
const unavailable = (answer: Awaited<ReturnType<TestApi['post']>>, code: string): number => {
  expect([answer.statusCode, answer.json().error]).toEqual([503, { code, message: FIXED }]);
  expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  expect(answer.headers['x-request-id']).toBe(answer.json().request_id);
  return Number(answer.headers['retry-after']);
};
const reservations = async (ip: string) => {
  await api.caughtUp();
  const { rows } = await api.sql.query('select state from read.reservation where ip = $1', [ip]);
  return rows.map(({ state }) => state);
};

describe('a reservation whose submission is not confirmed', () => {
  it.each([
    ['5.8.0.1', () => new OutcomeUnknown('no answer')],
    ['5.8.0.2', () => new StoreUnavailable('gone')],
    ['5.8.0.3', () => new StoreBusy('busy')],
  ])('%s is submission_unconfirmed, stands, and is completed by a repeat', async (ip, fault) => {
    faults.failAppends('enrichment-', fault);
    unavailable(await api.post(key, ip), 'submission_unconfirmed');
    const seen = await eventually(
      'the reservation is known',
      () => api.get(key, ip),
      (answer) => answer.statusCode === 503,
    );
    unavailable(seen, 'submission_unconfirmed');
    expect((await api.usage(key)).json().enrichment.submission_unconfirmed).toBe(1);
    unavailable(await api.post(key, ip), 'submission_unconfirmed');
    expect(await reservations(ip)).toEqual(['reserved']);

    faults.heal();
    expect((await api.post(key, ip)).statusCode).toBe(202);
    expect(await reservations(ip)).toEqual(['submitted']);
    expect((await api.usage(key)).json().enrichment.submission_unconfirmed).toBe(0);
  });

  it('spends the allowance once, however often it is repeated', async () => {
    const capped = await api.key({ new_enrichments_per_day: 1 });
    faults.failAppends('enrichment-', () => new OutcomeUnknown('no answer'));
    for (let n = 0; n < 3; n += 1) {
      unavailable(await api.post(capped, '5.8.0.5'), 'submission_unconfirmed');
    }
    faults.heal();
    expect((await api.post(capped, '5.8.0.5')).statusCode).toBe(202);
    expect((await api.post(capped, '5.8.0.6')).json().error.code).toBe('enrichment_limit');
  });
});

describe('a store that fails', () => {
  it('before the reservation is known is backend_unavailable, and repeating is safe', async () => {
    for (const fault of [() => new OutcomeUnknown('no answer'), () => new StoreUnavailable('gone')]) {
      faults.failAppends('intake-', fault);
      unavailable(await api.post(key, '5.8.1.1'), 'backend_unavailable');
      faults.heal();
    }
    expect((await api.post(key, '5.8.1.1')).statusCode).toBe(202);
    expect(await reservations('5.8.1.1')).toHaveLength(1);
  });

  it('to read is backend_unavailable', async () => {
    faults.failReads('enrichment-', () => new StoreUnavailable('gone'));
    unavailable(await api.post(key, '5.8.1.2'), 'backend_unavailable');
  });

  it('because too much waits is api_busy, with Retry-After 5', async () => {
    faults.failAppends('intake-', () => new StoreBusy('busy'));
    expect(unavailable(await api.post(key, '5.8.1.3'), 'api_busy')).toBe(5);
  });

  it('to answer within five seconds is backend_timeout', async () => {
    faults.failReads('enrichment-', 'hangs');
    const started = performance.now();
    unavailable(await api.post(key, '5.8.1.4'), 'backend_timeout');
    expect(performance.now() - started).toBeLessThan(6_000);
  });

  it('to count in time is usage_unavailable, and such answers are not counted', async () => {
    const own = await api.key();
    await api.get(own, '5.8.2.1');
    faults.failAppends('usage-', 'hangs');
    const started = performance.now();
    unavailable(await api.get(own, '5.8.2.1'), 'usage_unavailable');
    // Four seconds while the append is under way.
    expect(performance.now() - started).toBeGreaterThan(3_900);
    expect(performance.now() - started).toBeLessThan(5_500);
    unavailable(await api.inject(own, { method: 'GET', url: '/v1/lookup' }), 'usage_unavailable');
    faults.heal();
    await api.get(own, '5.8.2.1');
    const usage = await eventually(
      'the counts that landed late are taken back',
      () => api.usage(own),
      (answer) => answer.json().totals.requests === 2,
    );
    expect(usage.json().outcomes).toMatchObject({ error: 2, invalid_request: 0 });
  });

  it('to count at all is usage_unavailable too', async () => {
    const own = await api.key();
    faults.failAppends('usage-', () => new OutcomeUnknown('no answer'));
    unavailable(await api.get(own, '5.8.2.3'), 'usage_unavailable');
    faults.heal();
    expect((await api.get(own, '5.8.2.3')).statusCode).toBe(404);
    expect((await api.usage(own)).json().totals.requests).toBe(1);
  });
});

describe('a completed lookup whose saved result is not there', () => {
  it('is lookup_reconciliation_required for a GET', async () => {
    provider.says('5.8.3.1', aCompany('Lost', { fresh_for_days: 1 }));
    await api.post(key, '5.8.3.1');
    await api.settled(key, '5.8.3.1');
    clock.advance(DAY);
    await api.sql.query(`delete from read.saved_lookup where ip = '5.8.3.1'`);
    expect(unavailable(await api.get(key, '5.8.3.1'), 'lookup_reconciliation_required')).toBe(15);
  });
});
