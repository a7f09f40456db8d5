/** A sweep that is killed between two steps, and read models that are rebuilt before the next one. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { sweepToEnd } from '../../bin/retention.ts';
import { DAY } from '../../domain/kernel/time.ts';
import type { EventStore } from '../../event-store/port.ts';
import { auditBilling } from '../../processors/billing/audit.ts';
import { closeTrackerDays } from '../../processors/usage/close-usage-streams.ts';
import { allProjections } from '../../projections/all.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { consumersCaughtUp } from '../support/consumers-caught-up.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';

class Killed extends Error {}

const clock = manualClock();
let api: TestApi;
let key: Key;
let reveal: string;
let session: unknown;
/** Names the store calls at which the sweep dies: `expire reveal-` before the deletion and so on. */
let dies: (call: string) => boolean;

const dying = (store: EventStore): EventStore => ({
  ...store,
  append: async (stream, ...rest) => {
    if (dies(`append ${stream}`)) throw new Killed();
    const appended = await store.append(stream, ...rest);
    if (dies(`appended ${stream}`)) throw new Killed();
    return appended;
  },
  expire: async (stream, last) => {
    if (dies(`expire ${stream}`)) throw new Killed();
    await store.expire(stream, last);
    if (dies(`expired ${stream}`)) throw new Killed();
  },
});

beforeEach(async () => {
  dies = () => false;
  const provider = scriptedProvider();
  provider.saysOtherwise(aCompany('Acme'));
  api = await startApi({ clock, providers: [provider], aroundStore: dying });
  key = await api.key();
  const tracker = await makeTracker(api, key);
  await api.post(key, '5.9.0.1');
  await api.settled(key, '5.9.0.1');
  await collect(api, tracker, { ip: '5.9.0.1' });
  session = (await feed(api, key)).sessions.at(-1)?.session_id;
  const headers = { 'idempotency-key': randomUUID() };
  const url = `/v1/sessions/${session}/reveal`;
  reveal = (await api.inject(key, { method: 'POST', url, headers })).json().reveal_id;
  clock.advance(32 * DAY);
  await api.caughtUp();
  await closeTrackerDays({ ...api.runtime, waitForHead: async () => true });
  await consumersCaughtUp(api);
});
afterEach(() => api.close());

const rebuildAll = async () => {
  const { store, databaseUrl: url } = api.runtime;
  await rebuild({ store, url, projections: allProjections });
  await api.caughtUp();
};
const audit = async () =>
  (await auditBilling(api.runtime, { partnerId: key.partner_id, patienceMs: 10_000 })).report;
const statuses = async () => {
  const urls = [`/v1/sessions/${session}`, `/v1/reveals/${reveal}`];
  return Promise.all(urls.map(async (url) => (await api.inject(key, { method: 'GET', url })).statusCode));
};

it.each(['expired reveal-', 'appended expired-', 'expired tab-'])(
  'leaves no difference to the audit and every id recorded when it died at "%s" and a rebuild followed',
  async (step) => {
    let deaths = 0;
    dies = (call) => {
      if (!call.startsWith(step)) return false;
      deaths += 1;
      return true;
    };
    while (deaths === 0) await sweepToEnd(api.runtime).catch((error) => expect(error).toBeInstanceOf(Killed));
    dies = () => false;
    await rebuildAll();
    expect((await audit()).differences).toEqual([]);
    await consumersCaughtUp(api);
    await sweepToEnd(api.runtime);
    await api.caughtUp();
    clock.advance(20 * DAY);
    expect((await audit()).differences).toEqual([]);
    expect(await statuses()).toEqual([410, 410]);
    const { rows } = await api.sql.query('select kind, id from work.expiring');
    expect(rows).toEqual([]);
  },
);
