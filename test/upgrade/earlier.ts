/** A partner's actions more than thirty days before a release was recorded, and their expiry. */
import { expect } from 'vitest';
import { sweepToEnd } from '../../bin/retention.ts';
import { updateKey } from '../../commands/partners/manage-partner.ts';
import { changeUser } from '../../commands/partners/manage-user.ts';
import { closeTrackerDays, closeUsageStreams } from '../../processors/usage/close-usage-streams.ts';
import type { Key, TestApi } from '../support/api.ts';
import { makeUser } from '../support/dashboard.ts';
import { domainsOf } from '../support/domains.ts';
import { eventually } from '../support/eventually.ts';
import { COMPANY, reveal, type Surroundings, settled } from '../support/everything.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';
import { until } from '../support/until.ts';

const sent = async (api: TestApi, key: Key, method: 'POST' | 'PATCH', url: string, payload = {}) => {
  const answer = await api.inject(key, { method, url, payload });
  expect(answer.statusCode, `${method} ${url}: ${answer.body}`).toBeLessThan(300);
  return answer.json();
};

/** Its result becomes stale, and its refresh fails. */
const STALE = '5.9.0.7';

const changePeople = async (api: TestApi, key: Key): Promise<void> => {
  const { store, clock } = api.runtime;
  const context = { correlationId: 'a test', causationId: 'a test', at: clock.now() };
  const { partner_id } = key;
  const { key_id } = await api.key({}, partner_id);
  const change = { partner_id, key_id, limits: { requests_per_second: 7 }, by: 'operator' } as const;
  expect(await updateKey(store, change, context)).toMatchObject({ ok: true });
  const user = await makeUser(api, partner_id);
  for (const type of ['ResetPassword', 'ChangePassword', 'RemoveUser'] as const) {
    expect(await changeUser(store, type, user.user_id, context)).toMatchObject({ ok: true });
  }
};

const changeTrackers = async (api: TestApi, key: Key, tracker: string): Promise<void> => {
  const domains = domainsOf(api, key, tracker);
  const { id } = (await domains.claim('given-up.example.com')).json();
  expect((await domains.remove(id)).statusCode).toBeLessThan(300);
  const gone = await makeTracker(api, key);
  const url = `/v1/trackers/${gone}`;
  await api.inject(key, { method: 'DELETE', url });
  await sent(api, key, 'POST', `${url}/enable`);
  await sent(api, key, 'POST', `${url}/delete`);
};

/** An endpoint with a rotated secret, and a delivery that was sent twice. */
const deliverTwice = async (api: TestApi, key: Key, around: Surroundings): Promise<void> => {
  const url = around.webhookUrls.receiver;
  const { id } = await sent(api, key, 'POST', '/v1/webhooks', {
    name: 'old',
    url,
    events: ['session.created'],
  });
  const endpoint = `/v1/webhooks/${id}`;
  await sent(api, key, 'PATCH', endpoint, { name: 'older' });
  await sent(api, key, 'POST', `${endpoint}/rotate-secret`);
  await sent(api, key, 'POST', `${endpoint}/test`);
  const delivered = (attempts: number) =>
    eventually(
      `attempt ${attempts} delivered it`,
      async () => (await api.inject(key, { method: 'GET', url: `${endpoint}/deliveries` })).json().deliveries,
      (all) => all[0]?.state === 'delivered' && all[0].attempts === attempts,
    );
  const [delivery] = await delivered(1);
  await sent(api, key, 'POST', `${endpoint}/deliveries/${delivery.id}/retry`);
  await delivered(2);
};

/** What is requested later: an expiring session and receipt, a domain, a stale result and that day's usage. */
export interface Past {
  readonly tracker: string;
  readonly failing: string;
  readonly urls: readonly string[];
}

export const liveEarlier = async (api: TestApi, key: Key, around: Surroundings): Promise<Past> => {
  await changePeople(api, key);
  const tracker = await makeTracker(api, key);
  await changeTrackers(api, key, tracker);
  await deliverTwice(api, key, around);
  await api.post(key, STALE);
  await api.settled(key, STALE);
  const failing = (await domainsOf(api, key, tracker).claim('nowhere.example.com')).json().id;
  await collect(api, tracker, { ip: COMPANY });
  const session = (await feed(api, key)).sessions[0]?.session_id;
  const { reveal_id } = await reveal(api, key, session);
  const receipt = `/v1/reveals/${reveal_id}`;
  await eventually(
    'the reveal is complete',
    () => api.inject(key, { method: 'GET', url: receipt }),
    ({ statusCode }) => statusCode === 200,
  );
  await settled(api);
  const from = new Date(api.runtime.clock.now()).toISOString().slice(0, 10);
  const days = `from=${from}&to=${from}`;
  const urls = [
    `/v1/usage?${days}`,
    `/v1/trackers/${tracker}/usage?${days}`,
    `/v1/trackers/${tracker}/domains/${failing}`,
    `/v1/sessions/${session}`,
    receipt,
    `/v1/lookup?ip=${STALE}`,
  ];
  return { tracker, failing, urls };
};

/** Waits for what forty days later expires by itself, and starts a refresh that fails. */
export const continueLater = async (
  api: TestApi,
  key: Key,
  around: Surroundings,
  past: Past,
): Promise<void> => {
  await eventually(
    'the domain has failed',
    () => domainsOf(api, key, past.tracker).show(past.failing),
    ({ status }) => status === 'failed',
  );
  around.provider.says(STALE, 'fails');
  await api.post(key, STALE);
};

export const expire = async (api: TestApi): Promise<void> => {
  await closeUsageStreams(api.runtime);
  await api.caughtUp();
  await closeTrackerDays({ ...api.runtime, waitForHead: async () => true });
  await until('sessions and receipts are gone', async () => {
    await api.caughtUp();
    await sweepToEnd(api.runtime);
    await api.caughtUp();
    const left = 'select session_id from read.session union all select reveal_id from read.reveal';
    return (await api.sql.query(left)).rowCount === 0;
  });
};
