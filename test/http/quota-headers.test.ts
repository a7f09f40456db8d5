import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';

let api: TestApi;
let key: Key;
const clock = manualClock();
beforeAll(async () => {
  api = await startApi({ clock, env: { WEBHOOK_MANAGEMENT_PER_MINUTE: '3' } });
});
beforeEach(async () => {
  clock.advance(1_000);
  key = await api.key({ requests_per_second: 3 });
});
afterAll(() => api.close());

const get = async (url: string, by: Key = key) => {
  const { statusCode, headers } = await api.inject(by, { method: 'GET', url });
  return [statusCode, headers['ratelimit-policy'], headers.ratelimit];
};

it('answers tell the rate of the key and what is left of it', async () => {
  const policy = '"key";q=3;w=1';
  expect(await get('/v1/usage')).toEqual([200, policy, '"key";r=2;t=1']);
  expect(await get('/v1/lookup?ip=nonsense')).toEqual([400, policy, '"key";r=1;t=1']);
  expect(await get('/v1/trackers')).toEqual([200, policy, '"key";r=0;t=1']);
  expect(await get('/v1/usage')).toEqual([429, policy, '"key";r=0;t=1']);
  clock.advance(1_000);
  expect(await get('/v1/usage')).toEqual([200, policy, '"key";r=2;t=1']);
});

it('the management of webhooks has a budget of the partner besides', async () => {
  const policy = '"key";q=3;w=1, "webhooks";q=3;w=60';
  expect(await get('/v1/webhooks')).toEqual([200, policy, '"key";r=2;t=1, "webhooks";r=2;t=60']);
  expect(await get('/v1/webhooks')).toEqual([200, policy, '"key";r=1;t=1, "webhooks";r=1;t=60']);
  const other = await api.key({ requests_per_second: 5 }, key.partner_id);
  const [, , left] = await get('/v1/webhooks', other);
  expect(left).toBe('"key";r=4;t=1, "webhooks";r=0;t=60');
  const refused = await api.inject(key, { method: 'GET', url: '/v1/webhooks' });
  expect(refused.statusCode).toBe(429);
  expect(refused.headers.ratelimit).toBe(`"key";r=0;t=1, "webhooks";r=0;t=${refused.headers['retry-after']}`);
});

it('answers without a valid key tell no rates', async () => {
  const answers = [
    await api.app.inject({ method: 'GET', url: '/v1/usage' }),
    await api.app.inject({ method: 'GET', url: '/healthz' }),
    await api.inject(key, { method: 'PUT', url: '/v1/usage' }),
  ];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([401, 200, 405]);
  for (const { headers } of answers) expect(Object.keys(headers).join()).not.toContain('ratelimit');
});
