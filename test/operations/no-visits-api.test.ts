import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ownContext } from '../../commands/handle.ts';
import { changePartner } from '../../commands/partners/manage-partner.ts';
import { DAY, HOUR, isoTime } from '../../domain/kernel/time.ts';
import { createConditionMetrics } from '../../operations/condition-metrics.ts';
import { conditionsOf } from '../../operations/conditions.ts';
import { recordConditions } from '../../processors/operations/operator-alerts.ts';
import { listSilentTrackers } from '../../queries/trackers/silent-trackers.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { loggedIn, makeUser } from '../support/dashboard.ts';
import { collect, makeTracker } from '../support/tracking.ts';

const clock = manualClock();
let api: TestApi;
let key: Key;
let tracker: string;
beforeAll(async () => {
  api = await startApi({ clock });
  key = await api.key();
  tracker = await makeTracker(api, key);
  for (let day = 0; day < 10; day += 1) {
    await visited(tracker);
    clock.advance(DAY);
  }
});
afterAll(() => api.close());

const visited = async (trackerId: string, body = {}): Promise<void> => {
  expect((await collect(api, trackerId, { body })).statusCode).toBe(204);
};
const silent = async (): Promise<readonly string[]> => {
  await api.caughtUp();
  const found = await listSilentTrackers(api.runtime.pool, key.partner_id, clock.now());
  return found.map(({ tracker_id }) => tracker_id);
};
const alerts = async () => {
  await recordConditions(api.runtime, conditionsOf('webhook'));
  const { rows } = await api.sql.query<{ body: string }>('select body from work.operator_alert');
  return rows.map(({ body }) => JSON.parse(body)).filter(({ type }) => type === 'operator.no_visits');
};
const count = async (): Promise<string | undefined> => {
  const registry = new Registry();
  const { pool, config } = api.runtime;
  createConditionMetrics(registry, () => ({ pool, config, now: clock.now(), partnerId: null }));
  return /doorplate_condition\{code="no_visits",severity="warning"\} (\d+)/.exec(
    await registry.metrics(),
  )?.[1];
};

describe('a tracker that had visits each day and none for 24 hours', () => {
  it('is told on the dashboard, to the operator once, and in the metrics', async () => {
    expect(await silent()).toEqual([tracker]);
    const page = await loggedIn(api, await makeUser(api, key.partner_id));
    const home = (await page.get('')).body;
    expect(home).toContain('“a site” has had no visits for 24 hours.');
    expect(home).toContain(`href="/dashboard/trackers/${tracker}">See what its pixel sends`);
    const told = await alerts();
    expect(told.map(({ data }) => data)).toEqual([
      {
        partner_id: key.partner_id,
        tracker_id: tracker,
        name: 'a site',
        last_visit_at: isoTime(clock.now() - DAY),
      },
    ]);
    expect(await count()).toBe('1');
    clock.advance(40 * DAY);
    await api.sql.query('delete from work.operator_alert');
    expect(await alerts()).toEqual([]);
    expect(await count()).toBe('1');
    clock.advance(-40 * DAY);
  });

  it('is not told while it is disabled, or its partner suspended', async () => {
    const url = `/v1/trackers/${tracker}`;
    expect((await api.inject(key, { method: 'DELETE', url })).statusCode).toBeLessThan(300);
    expect(await silent()).toEqual([]);
    expect((await api.inject(key, { method: 'POST', url: `${url}/enable` })).statusCode).toBe(200);
    expect(await silent()).toEqual([tracker]);
    const { store } = api.runtime;
    for (const kind of ['SuspendPartner', 'ResumePartner'] as const) {
      await changePartner(store, kind, key.partner_id, ownContext(clock));
      expect(await silent()).toEqual(kind === 'SuspendPartner' ? [] : [tracker]);
    }
  });

  it('stays silent when a crawler comes or a capture is repeated, and ends with the next visit', async () => {
    const headers = {
      'user-agent': 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
    };
    expect((await collect(api, tracker, { headers })).statusCode).toBe(204);
    expect(await silent()).toEqual([tracker]);
    await visited(tracker);
    expect(await silent()).toEqual([]);
    expect(await count()).toBe('0');
  });

  it('counts from the last visit of a session that went on, not from its begin', async () => {
    const token = randomUUID();
    await visited(tracker, { token });
    clock.advance(HOUR / 3);
    await visited(tracker, { token });
    clock.advance(DAY - 1);
    expect(await silent()).toEqual([]);
    clock.advance(1);
    expect(await silent()).toEqual([tracker]);
  });
});
