/** A clock that was a year ahead destroyed the keys of days, and was put right: nothing but those days' data is lost. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../domain/kernel/time.ts';
import { auditBilling } from '../../processors/billing/audit.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { testDatabase } from '../support/database.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { codeOf, collect, feed, makeTracker } from '../support/tracking.ts';
import { until } from '../support/until.ts';

const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
/** The process that is asked: after the clock was put right, one that has nothing in its memory. */
let other: TestApi;
let key: Key;
let tracker: string;
let endpoint: string;
let address = 0;

const get = (url: string) => other.inject(key, { method: 'GET', url });
const reveal = (session: string, idempotencyKey: string = randomUUID()) =>
  other.inject(key, {
    method: 'POST',
    url: `/v1/sessions/${session}/reveal`,
    headers: { 'idempotency-key': idempotencyKey },
  });
const visit = async () => {
  address += 1;
  const ip = `5.9.0.${address}`;
  await collect(api, tracker, { ip, body: { custom: { n: address } } });
  const { sessions } = await feed(other, key);
  return { ip, id: String(sessions.at(-1)?.session_id) };
};
const saved = async (ip: string) => {
  await api.post(key, ip);
  await api.settled(key, ip);
};
const statesOf = async (sessionId: string): Promise<string[]> => {
  const { rows } = await api.sql.query<{ state: string }>(
    `select state from read.webhook_delivery where event_id = 'evt_session_' || $1::text`,
    [sessionId],
  );
  return rows.map(({ state }) => state);
};

let unrevealed: string;
/** Its delivery is pending. */
let lost: string;
let complete: { id: string; key: string; receipt: string };
let pending: { id: string; key: string; receipt: string };

beforeAll(async () => {
  const database = await testDatabase();
  api = await startApi({ clock, providers: [provider], database });
  other = api;
  key = await api.key();
  tracker = await makeTracker(api, key);
  provider.saysOtherwise(aCompany('Acme'));
  unrevealed = (await visit()).id;
  const [first, second] = [await visit(), await visit()];
  await saved(first.ip);
  const keys = [randomUUID(), randomUUID()] as const;
  const done = await reveal(first.id, keys[0]);
  expect(done.statusCode).toBe(200);
  complete = { id: first.id, key: keys[0], receipt: done.json().reveal_id };
  const payload = { name: 'receiver', url: 'https://receiver.invalid/', events: ['session.created'] };
  endpoint = (await api.inject(key, { method: 'POST', url: '/v1/webhooks', payload })).json().id;
  provider.says(second.ip, 'fails');
  const asked = await reveal(second.id, keys[1]);
  expect(asked.statusCode).toBe(202);
  pending = { id: second.id, key: keys[1], receipt: asked.json().reveal_id };
  lost = (await visit()).id;
  await until('the delivery is queued', async () => (await statesOf(lost)).length === 1);
  const right = clock.now();
  clock.set(right + 365 * DAY);
  await api.runtime.dayKeys.destroyExpired();
  clock.set(right + MINUTE);
  other = await startApi({ clock, workers: false, database: { ...database, drop: async () => undefined } });
});
afterAll(async () => {
  await other.close();
  await api.close();
});

it('a session whose data is destroyed counts as expired, wherever it is asked for', async () => {
  for (const id of [unrevealed, complete.id, pending.id]) {
    const preview = await get(`/v1/sessions/${id}`);
    expect([preview.statusCode, codeOf(preview)]).toEqual([410, 'session_expired']);
  }
  const refused = await reveal(unrevealed);
  expect([refused.statusCode, codeOf(refused)]).toEqual([410, 'session_expired']);
  expect((await feed(other, key)).sessions).toEqual([]);
});

it('a complete receipt stays what it was, without labels', async () => {
  for (const answer of [
    await get(`/v1/reveals/${complete.receipt}`),
    await reveal(complete.id, complete.key),
  ]) {
    expect(answer.statusCode).toBe(200);
    const { status, billable_units, custom } = answer.json();
    expect({ status, billable_units, custom }).toEqual({ status: 'complete', billable_units: 1, custom: {} });
  }
});

it('a pending reveal is shown as expired, and never billed', async () => {
  for (const answer of [await get(`/v1/reveals/${pending.receipt}`), await reveal(pending.id, pending.key)]) {
    expect([answer.statusCode, codeOf(answer)]).toEqual([
      410,
      expect.stringMatching(/^(reveal|session)_expired$/),
    ]);
  }
  const { report } = await auditBilling(api.runtime, { partnerId: key.partner_id, patienceMs: 10_000 });
  expect([report.units, report.differences]).toEqual([1, []]);
});

it('a pending delivery whose payload is destroyed expires', async () => {
  clock.advance(HOUR);
  await until('it has expired', async () => (await statesOf(lost))[0] === 'expired');
  const { deliveries } = (await get(`/v1/webhooks/${endpoint}/deliveries`)).json();
  const retried = await api.inject(key, {
    method: 'POST',
    url: `/v1/webhooks/${endpoint}/deliveries/${deliveries[0].id}/retry`,
  });
  expect([retried.statusCode, codeOf(retried)]).toEqual([410, 'webhook_event_expired']);
});

it('later captures are notified and revealed as usual', async () => {
  const { ip, id } = await visit();
  await saved(ip);
  expect((await get(`/v1/sessions/${id}`)).json()).toMatchObject({ custom: { n: address } });
  expect((await reveal(id)).json()).toMatchObject({ status: 'complete', custom: { n: address } });
  await until('it is queued', async () => (await statesOf(id)).length === 1);
});
