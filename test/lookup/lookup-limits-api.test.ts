import { afterEach, describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../domain/kernel/time.ts';
import {
  type ApiOptions,
  type Key,
  type ManualClock,
  manualClock,
  startApi,
  type TestApi,
} from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';

let api: TestApi;
let clock: ManualClock;
let provider: ReturnType<typeof scriptedProvider>;

/** An API whose provider never answers, so that all work stays unfinished. */
const start = async (options: ApiOptions = {}): Promise<void> => {
  clock = manualClock();
  provider = scriptedProvider();
  provider.saysOtherwise('hangs');
  api = await startApi({ clock, providers: [provider], ...options });
};
afterEach(() => api.close());

const outcome = (answer: { statusCode: number; json(): { error?: { code: string } } }) => [
  answer.statusCode,
  answer.json().error?.code,
];
const ACCEPTED = [202, undefined];
const post = async (key: Key, ip: string) => outcome(await api.post(key, ip));
const get = async (key: Key, ip: string) => outcome(await api.get(key, ip));

describe('a key over its rate', () => {
  it('gets rate_limit until the window has passed, on every path, and others do not', async () => {
    await start();
    const slow = await api.key({ requests_per_second: 3 });
    const sibling = await api.key({ requests_per_second: 3 }, slow.partner_id);
    for (let n = 0; n < 3; n += 1) expect(await get(slow, '5.7.0.1')).toEqual([404, 'not_requested']);
    const refused = await api.get(slow, '5.7.0.1');
    expect(outcome(refused)).toEqual([429, 'rate_limit']);
    expect(refused.headers['retry-after']).toBe('1');
    expect(outcome(await api.usage(slow))).toEqual([429, 'rate_limit']);
    expect(await get(sibling, '5.7.0.1')).toEqual([404, 'not_requested']);
    clock.advance(999);
    expect(await post(slow, '5.7.0.1')).toEqual([429, 'rate_limit']);
    clock.advance(1);
    expect(await post(slow, '5.7.0.1')).toEqual(ACCEPTED);
  });

  it('gets this refusal before any about the request', async () => {
    await start();
    const slow = await api.key({ requests_per_second: 1 });
    await get(slow, '5.7.0.1');
    const wrong = {
      method: 'POST',
      url: '/v1/lookup?x',
      payload: '{',
      headers: { 'content-type': 'a/b' },
    } as const;
    expect(outcome(await api.inject(slow, wrong))).toEqual([429, 'rate_limit']);
  });
});

describe('the shared capacity', () => {
  it('of requests is api_rate_limit for every key', async () => {
    await start({ env: { API_REQUESTS_PER_SECOND: '4' } });
    const keys = [await api.key(), await api.key()] as const;
    for (let n = 0; n < 4; n += 1) await get(keys[0], '5.7.1.1');
    const refused = await api.get(keys[1], '5.7.1.1');
    expect(outcome(refused)).toEqual([429, 'api_rate_limit']);
    expect(refused.headers['retry-after']).toBe('1');
    clock.advance(1_000);
    expect(await get(keys[1], '5.7.1.1')).toEqual([404, 'not_requested']);
  });

  it('of lookups is lookup_capacity by distinct addresses, GET and POST', async () => {
    await start({ env: { LOOKUP_CAPACITY: '2' } });
    const key = await api.key();
    const same = await Promise.all(Array.from({ length: 8 }, () => get(key, '5.7.2.1')));
    expect(same).toEqual(Array(8).fill([404, 'not_requested']));
    const distinct = await Promise.all(Array.from({ length: 8 }, (_, n) => post(key, `5.7.3.${n}`)));
    expect(distinct.filter(([, code]) => code === undefined)).toHaveLength(2);
    expect(distinct.filter(([, code]) => code === 'lookup_capacity')).toHaveLength(6);
    expect(await get(key, '5.7.2.1')).toEqual([404, 'not_requested']);
  });

  it('of new enrichments is enrichment_capacity by the minute; repeats and joins are free', async () => {
    await start({ env: { ENRICHMENT_INTAKE_PER_MINUTE: '3' } });
    const [key, other] = [await api.key(), await api.key()];
    for (let n = 0; n < 3; n += 1) expect(await post(key, `5.7.4.${n}`)).toEqual(ACCEPTED);
    const refused = await api.post(other, '5.7.4.9');
    expect(outcome(refused)).toEqual([429, 'enrichment_capacity']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(await get(other, '5.7.4.9')).toEqual([404, 'not_requested']);
    expect(await post(key, '5.7.4.0')).toEqual(ACCEPTED);
    expect(await post(other, '5.7.4.1')).toEqual(ACCEPTED);
    clock.advance(MINUTE);
    expect(await post(other, '5.7.4.9')).toEqual(ACCEPTED);
  });

  it('of outstanding work is enrichment_capacity until work has ended', async () => {
    await start({ env: { ENRICHMENT_OUTSTANDING: '2' } });
    const [key, other] = [await api.key(), await api.key()];
    const asked = await Promise.all(
      Array.from({ length: 6 }, (_, n) => post(n % 2 ? key : other, `5.7.5.${n}`)),
    );
    expect(asked.filter(([status]) => status === 202)).toHaveLength(2);
    expect(asked.filter(([, code]) => code === 'enrichment_capacity')).toHaveLength(4);
    for (let n = 0; n < 6; n += 1) provider.says(`5.7.5.${n}`, aCompany('Done'));
    provider.says('5.7.5.7', aCompany('Next'));
    clock.advance(MINUTE);
    await eventually(
      'there is room again',
      () => post(other, '5.7.5.7'),
      ([status]) => status !== 429,
      15_000,
    );
  });
});

describe('a partner at its pending limit', () => {
  it('gets pending_limit for new work alone, from every key, until work has ended', async () => {
    await start();
    const key = await api.key({ pending_enrichments: 2 });
    const roomy = await api.key({ pending_enrichments: 3 }, key.partner_id);
    provider.says('5.7.6.9', aCompany('Saved'));
    const stranger = await api.key();
    await api.post(stranger, '5.7.6.9');
    await api.settled(stranger, '5.7.6.9');

    const burst = await Promise.all(Array.from({ length: 10 }, (_, n) => post(key, `5.7.6.${n % 5}`)));
    const accepted = new Set(burst.flatMap(([status], n) => (status === 202 ? [n % 5] : [])));
    expect(accepted.size).toBe(2);
    const [taken = 0] = accepted;
    const refused = await api.post(key, '5.7.6.8');
    expect(outcome(refused)).toEqual([429, 'pending_limit']);
    expect(refused.headers['retry-after']).toBe('15');
    expect(await post(key, `5.7.6.${taken}`)).toEqual(ACCEPTED);
    expect(await get(key, `5.7.6.${taken}`)).toEqual(ACCEPTED);
    expect(await post(key, '5.7.6.9')).toEqual([200, undefined]);
    expect(await post(roomy, '5.7.6.8')).toEqual(ACCEPTED);
    expect(await post(roomy, '5.7.6.7')).toEqual([429, 'pending_limit']);
    expect(await post(stranger, '5.7.6.7')).toEqual(ACCEPTED);
  });

  it('counts joins and retrying work too', async () => {
    await start();
    const key = await api.key({ pending_enrichments: 1 });
    const other = await api.key();
    provider.says('5.7.7.1', 'fails');
    await api.post(other, '5.7.7.1');
    expect(await post(key, '5.7.7.1')).toEqual(ACCEPTED);
    expect(await post(key, '5.7.7.2')).toEqual([429, 'pending_limit']);
  });
});

describe('a key at its daily allowance', () => {
  it('gets enrichment_limit until the next UTC day; repeats and saved results are free', async () => {
    await start();
    const key = await api.key({ new_enrichments_per_day: 2 });
    const sibling = await api.key({ new_enrichments_per_day: 2 }, key.partner_id);
    const burst = await Promise.all(Array.from({ length: 8 }, (_, n) => post(key, `5.7.8.${n % 4}`)));
    const accepted = [...new Set(burst.flatMap(([status], n) => (status === 202 ? [n % 4] : [])))];
    expect(accepted).toHaveLength(2);
    const refused = await api.post(key, '5.7.8.9');
    expect(outcome(refused)).toEqual([429, 'enrichment_limit']);
    expect(refused.headers['retry-after']).toBe(String((12 * HOUR - HOUR / 2) / 1_000));
    expect(await get(key, '5.7.8.9')).toEqual([404, 'not_requested']);
    expect(await post(key, `5.7.8.${accepted[0]}`)).toEqual(ACCEPTED);
    expect(await post(sibling, '5.7.8.9')).toEqual(ACCEPTED);

    clock.set(Date.UTC(2026, 2, 15) - 1);
    const late = await api.post(key, '5.7.8.10');
    expect(late.headers['retry-after']).toBe('1');
    clock.advance(1);
    expect(await post(key, '5.7.8.10')).toEqual(ACCEPTED);
    clock.advance(DAY);
    expect(await post(key, '5.7.8.11')).toEqual(ACCEPTED);
  });

  it('of 0 reads saved addresses only', async () => {
    await start();
    const [key, other] = [await api.key({ new_enrichments_per_day: 0 }), await api.key()];
    provider.says('5.7.9.1', aCompany('Saved'));
    expect(await post(key, '5.7.9.1')).toEqual([429, 'enrichment_limit']);
    await api.post(other, '5.7.9.1');
    await api.settled(other, '5.7.9.1');
    expect(await post(key, '5.7.9.1')).toEqual([200, undefined]);
  });
});

describe('an expired key', () => {
  it('is unauthorized from that very instant on', async () => {
    await start();
    const key = await api.key({ expires_at: new Date(clock.now() + HOUR).toISOString() });
    clock.advance(HOUR - 1);
    expect(await get(key, '5.7.9.2')).toEqual([404, 'not_requested']);
    clock.advance(1);
    expect(await get(key, '5.7.9.2')).toEqual([401, 'unauthorized']);
  });
});
