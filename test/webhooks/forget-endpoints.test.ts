import { afterAll, beforeAll, expect, it } from 'vitest';
import { forgetOldEndpoints } from '../../bin/retention.ts';
import { DAY } from '../../domain/kernel/time.ts';
import { endpointsStream } from '../../domain/webhooks/endpoints.ts';
import { allProjections } from '../../projections/all.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { consumersCaughtUp } from '../support/consumers-caught-up.ts';
import { collect, makeTracker } from '../support/tracking.ts';
import { until } from '../support/until.ts';

const clock = manualClock();
let api: TestApi;
let key: Key;
beforeAll(async () => {
  api = await startApi({ clock });
  key = await api.key();
});
afterAll(() => api.close());

const call = async (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) => {
  const url = `/v1/webhooks${path}`;
  const answer = await api.inject(key, { method, url, ...(body ? { payload: body } : {}) });
  const { request_id: _, ...rest } = answer.body === '' ? { request_id: null } : answer.json();
  return { status: answer.statusCode, ...rest };
};
const create = async (name: string): Promise<string> =>
  (await call('POST', '', { name, url: 'https://receiver.example.com/', events: ['session.created'] })).id;
const events = async () => {
  const stored = await Array.fromAsync(api.runtime.store.readStream(endpointsStream(key.partner_id)));
  return stored.map(({ type }) => type);
};
const deliveriesTo = async (id: string) =>
  (await api.sql.query('select from read.webhook_delivery where webhook_id = $1', [id])).rows.length;

const subscriptionsOf = async (id: string) =>
  (await api.sql.query('select from read.webhook_subscription where webhook_id = $1', [id])).rows.length;

const activities = async () =>
  (await api.sql.query(`select * from read.activity where subject_kind = 'webhook' order by position`)).rows;

it('deleted endpoints leave the log and the tables after 90 days, and the other endpoints keep working', async () => {
  const [gone, paused, active] = [await create('gone'), await create('paused'), await create('active')];
  await call('PATCH', `/${paused}`, { enabled: false });
  await call('POST', `/${active}/rotate-secret`);
  await call('DELETE', `/${gone}`);
  clock.advance(89 * DAY);
  await forgetOldEndpoints(api.runtime);
  expect(await events()).toHaveLength(6);
  expect((await call('GET', `/${gone}`)).status).toBe(200);
  const before = [await call('GET', `/${paused}`), await call('GET', `/${active}`)];
  clock.advance(2 * DAY);
  await consumersCaughtUp(api);
  await forgetOldEndpoints(api.runtime);
  await consumersCaughtUp(api);
  await forgetOldEndpoints(api.runtime);
  expect(await events()).toEqual(['webhooks.EndpointsSnapshotted.v1']);
  expect(await subscriptionsOf(paused)).toBe(0);
  expect(await subscriptionsOf(active)).toBe(1);
  await api.caughtUp();
  const { rows } = await api.sql.query(
    `select webhook_id from read.webhook_endpoint where webhook_id = $1
     union all select webhook_id from read.webhook_health where webhook_id = $1
     union all select webhook_id from read.webhook_subscription where webhook_id = $1`,
    [gone],
  );
  expect(rows).toEqual([]);
  expect((await call('GET', `/${gone}`)).status).toBe(404);

  const told = await activities();
  expect(told).toHaveLength(6);
  const { store, databaseUrl: url } = api.runtime;
  await rebuild({ store, url, projections: allProjections });
  await api.caughtUp();
  expect(await activities()).toEqual(told);
  expect([await call('GET', `/${paused}`), await call('GET', `/${active}`)]).toEqual(before);
  const tracker = await makeTracker(api, key);
  await collect(api, tracker, { ip: '8.8.8.8' });
  await until('its visit is queued', async () => (await deliveriesTo(active)) === 1);
  expect(await deliveriesTo(paused)).toBe(0);
  expect((await call('PATCH', `/${paused}`, { enabled: true })).status).toBe(200);
});
