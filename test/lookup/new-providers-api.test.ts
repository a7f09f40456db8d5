import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { NotAsked, type Provider } from '../../processors/lookup/providers/provider.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, record, scriptedProvider } from '../support/providers.ts';

const clock = manualClock();
const near = scriptedProvider('near');
const vendor = scriptedProvider('vendor');
let holdBack = false;
/** The vendor behind a budget that may be used up. */
const limited: Provider = {
  name: 'vendor',
  isHeldBack: () => holdBack,
  lookup: async (ip, signal) => {
    if (holdBack) throw new NotAsked('not asked: its budget of today is used up');
    return vendor.lookup(ip, signal);
  },
};
const chain: Provider[] = [near];
let api: TestApi;
let key: Key;
beforeAll(async () => {
  api = await startApi({ clock, providers: chain });
  key = await api.key();
});
afterAll(() => api.close());
beforeEach(() => {
  holdBack = false;
  connect([near]);
});

/** Restarts the workers with these providers, as far as the API sees it. */
const connect = (providers: readonly Provider[]): void => {
  chain.splice(0, chain.length, ...providers);
  const names = providers.map(({ name }) => name);
  api.runtime.providers.configured = () => names;
};
const AN_ISP = record({ match_type: 'isp', network: { is_isp: true }, company: { name: 'Telia' } });
const savedByNear = async (ip: string): Promise<void> => {
  near.says(ip, AN_ISP);
  await api.post(key, ip);
  await api.settled(key, ip);
};
const statusOf = async (ip: string) => (await api.get(key, ip)).json().refresh_status;
describe('a provider that is connected after a result was saved', () => {
  it('improves the result on the next POST, and no other provider is asked again', async () => {
    await savedByNear('5.6.0.1');
    expect(await statusOf('5.6.0.1')).toBe('not_needed');
    vendor.says('5.6.0.1', aCompany('Acme'));
    connect([near, limited]);
    expect(await statusOf('5.6.0.1')).toBe('not_requested');
    const posted = await api.post(key, '5.6.0.1');
    expect([posted.statusCode, posted.json().refresh_status]).toEqual([200, 'pending']);
    const improved = await eventually(
      'the result is improved',
      () => api.get(key, '5.6.0.1'),
      (got) => got.json().refresh_status === 'not_needed',
    );
    expect(improved.json()).toMatchObject({ match_type: 'company', company: { name: 'Acme' } });
    expect([near.asked('5.6.0.1'), vendor.asked('5.6.0.1')]).toEqual([1, 1]);
  });

  it('that knows nothing makes the result complete and poorer in nothing', async () => {
    await savedByNear('5.6.0.2');
    connect([near, limited]);
    await api.post(key, '5.6.0.2');
    await eventually(
      'it was asked',
      () => statusOf('5.6.0.2'),
      (status) => status === 'not_needed',
    );
    expect((await api.get(key, '5.6.0.2')).json()).toMatchObject({
      match_type: 'isp',
      company: { name: 'Telia' },
    });
    expect((await api.post(key, '5.6.0.2')).json().refresh_status).toBe('not_needed');
    expect(vendor.asked('5.6.0.2')).toBe(1);
  });
});

describe('a provider that is held back', () => {
  it('leaves a result incomplete, and the POST after it may be asked again completes it', async () => {
    connect([near, limited]);
    holdBack = true;
    near.says('5.6.1.1', AN_ISP);
    vendor.says('5.6.1.1', aCompany('Acme'));
    await api.post(key, '5.6.1.1');
    await eventually(
      'the rest is saved',
      () => statusOf('5.6.1.1'),
      (status) => status === 'not_requested',
    );
    holdBack = false;
    await api.post(key, '5.6.1.1');
    await eventually(
      'it is complete',
      () => statusOf('5.6.1.1'),
      (status) => status === 'not_needed',
    );
    expect((await api.get(key, '5.6.1.1')).json().company.name).toBe('Acme');
  });

  it('was not asked: the address stays pending without an attempt, and completes once it may be asked', async () => {
    connect([near, limited]);
    holdBack = true;
    vendor.says('5.6.1.2', aCompany('Acme'));
    await api.post(key, '5.6.1.2');
    await eventually(
      'the attempt was held back',
      () => api.sql.query("select from work.claim where item = '5.6.1.2' and held_by = 'vendor'"),
      ({ rowCount }) => rowCount === 1,
    );
    const pending = await api.get(key, '5.6.1.2');
    expect([pending.statusCode, pending.json().attempts, pending.json().last_error]).toEqual([202, 0, null]);
    holdBack = false;
    // No clock moves: there is no back-off to wait for.
    const answer = await api.settled(key, '5.6.1.2');
    expect(answer.json()).toMatchObject({ company_found: true, company: { name: 'Acme' } });
    expect(near.asked('5.6.1.2')).toBe(2);
  });

  it('leaves the back-off of a real failure beside it as it is', async () => {
    connect([near, limited]);
    holdBack = true;
    near.says('5.6.1.3', 'fails');
    await api.post(key, '5.6.1.3');
    const failed = await eventually(
      'the attempt failed',
      () => api.get(key, '5.6.1.3'),
      (got) => got.json().attempts === 1,
    );
    expect(failed.json()).toMatchObject({ status: 'retrying', last_error: 'lookup_failed' });
    expect(Date.parse(failed.json().next_retry_at)).toBeGreaterThan(clock.now() + 10_000);
  });
});
