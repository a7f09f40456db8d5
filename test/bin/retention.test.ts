import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONSUMERS } from '../../bin/groups.ts';
import { forgetWhatExpired, sweepToEnd } from '../../bin/retention.ts';
import { DAY, HOUR, MINUTE, utcDay } from '../../domain/kernel/time.ts';
import type { EventStore } from '../../event-store/port.ts';
import { auditBilling } from '../../processors/billing/audit.ts';
import { closeTrackerDays } from '../../processors/usage/close-usage-streams.ts';
import { allProjections } from '../../projections/all.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { type Key, manualClock, NOON, startApi, type TestApi } from '../support/api.ts';
import { consumersCaughtUp } from '../support/consumers-caught-up.ts';
import { eventually } from '../support/eventually.ts';
import { holdingStore } from '../support/other-stores.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';

const STORES: [string, (store: EventStore, api: () => TestApi) => EventStore][] = [
  ['a store that deletes at once', (store) => store],
  ['a store that still holds what it deleted', (store, api) => holdingStore(store, () => api().runtime.pool)],
];

describe.each(STORES)('sessions and reveals on %s', (_what, around) => {
  const clock = manualClock();
  const provider = scriptedProvider();
  let api: TestApi;
  let key: Key;
  let tracker: string;
  const sessions: unknown[] = [];
  const reveals: string[] = [];

  const get = (url: string) => api.inject(key, { method: 'GET', url });
  const visitAndReveal = async (ip: string) => {
    await collect(api, tracker, { ip, body: { custom: { ip } } });
    const session = (await feed(api, key)).sessions.at(-1)?.session_id;
    sessions.push(session);
    await reveal(session);
  };
  const reveal = async (session: unknown) => {
    const url = `/v1/sessions/${session}/reveal`;
    const headers = { 'idempotency-key': randomUUID() };
    reveals.push((await api.inject(key, { method: 'POST', url, headers })).json().reveal_id);
  };
  /** Closes every day that is over, as a worker does. */
  const closeDays = async () => {
    await api.caughtUp();
    await closeTrackerDays({ ...api.runtime, waitForHead: async () => true });
    await api.caughtUp();
  };
  const rebuildAll = async () => {
    const { store, databaseUrl: url } = api.runtime;
    await rebuild({ store, url, projections: allProjections });
    await api.caughtUp();
  };
  /** The answers for partners and for an auditor. */
  const answers = async () => {
    const status = async (url: string) => `${(await get(url)).statusCode} ${url}`;
    const lines = [];
    for (const id of sessions) lines.push(await status(`/v1/sessions/${id}`));
    for (const id of reveals) lines.push(await status(`/v1/reveals/${id}`));
    const day = (days: number) => utcDay(NOON + days * DAY);
    const range = `?from=${day(0)}&to=${day(31)}`;
    const ofTracker = (await get(`/v1/trackers/${tracker}/usage${range}`)).json();
    const own = (await get(`/v1/usage${range}`)).json();
    const { report } = await auditBilling(api.runtime, { partnerId: key.partner_id, patienceMs: 10_000 });
    // Calls are counted, so each comparison adds one.
    const {
      totals: { api_requests: _, completed_responses: __, company_responses: ___, ...counts },
    } = ofTracker;
    return { lines, counts, units: own.reveals, feed: (await feed(api, key)).sessions, report };
  };
  const eventsOf = async (prefix: string) =>
    (await api.sql.query('select count(*)::int as n from eventlog.event where stream ^@ $1', [prefix]))
      .rows[0].n;
  const rowsOf = async (table: string) =>
    (await api.sql.query(`select count(*)::int as n from read.${table}`)).rows[0].n;

  beforeAll(async () => {
    const env = { CAPTURES_PER_SECOND: '100000', CAPTURES_PER_SECOND_PER_TRACKER: '100000' };
    api = await startApi({
      clock,
      env,
      providers: [provider],
      aroundStore: (store) => around(store, () => api),
    });
    key = await api.key();
    tracker = await makeTracker(api, key);
    provider.says('5.9.0.1', aCompany('Acme'));
    provider.says('5.9.0.2', aCompany('Other'));
    await visitAndReveal('5.9.0.1');
    const complete = (id: unknown) => async () => (await get(`/v1/reveals/${id}`)).statusCode === 200;
    await eventually('the first reveal is complete', complete(reveals[0]));
    clock.advance(MINUTE);
    await visitAndReveal('5.9.0.2');
    await eventually('the second reveal is complete', complete(reveals[1]));
    // Minutes before its session expires, and so on a day that is not over by then.
    clock.set(NOON + 30 * DAY - MINUTE);
    await reveal(sessions[0]);
    await api.caughtUp();
    await consumersCaughtUp(api);
  });
  afterAll(() => api.close());

  it('lets every follower of the log block deletion', async () => {
    const { rows } = await api.sql.query('select name from work.processor order by name');
    expect(rows.map(({ name }) => name)).toEqual(CONSUMERS.processors.toSorted());
  });

  it('give the same answers before the sweep, after it and after a rebuild at any time', async () => {
    clock.set(NOON + 30 * DAY + 10 * MINUTE);
    const expired = await answers();
    expect(expired.lines.map((line) => line.slice(0, 3))).toEqual(Array(5).fill('410'));
    expect(expired.feed).toEqual([]);
    expect(expired.report.differences).toEqual([]);
    expect(expired.report.units).toBe(3);
    expect(expired.counts).toEqual({ sessions: 2, reveals: 3, billable_reveals: 3, capture_requests: 2 });

    await rebuildAll();
    expect(await answers()).toEqual(expired);
    await closeDays();
    await consumersCaughtUp(api);
    await sweepToEnd(api.runtime);
    await api.caughtUp();
    expect([await rowsOf('session'), await rowsOf('expired_session')]).toEqual([0, 2]);
    // The third session waits for the end of its day.
    expect([await rowsOf('reveal'), await rowsOf('expired_reveal')]).toEqual([1, 2]);
    expect(await answers()).toEqual(expired);
    await rebuildAll();
    expect(await answers()).toEqual(expired);

    clock.set(NOON + 31 * DAY);
    await closeDays();
    await consumersCaughtUp(api);
    await sweepToEnd(api.runtime);
    await api.caughtUp();
    for (const again of [false, true]) {
      if (again) await rebuildAll();
      expect(await answers()).toEqual(expired);
      expect([await rowsOf('session'), await rowsOf('reveal')]).toEqual([0, 0]);
      expect([await rowsOf('expired_session'), await rowsOf('expired_reveal')]).toEqual([2, 3]);
    }
  });

  it('are reported as expired for 60 days and as unknown afterwards', async () => {
    clock.set(NOON + 90 * DAY - 1);
    const statuses = async () => (await answers()).lines.map((line) => line.slice(0, 3));
    expect(await statuses()).toEqual(Array(5).fill('410'));
    clock.set(NOON + 90 * DAY + MINUTE);
    expect(await statuses()).toEqual(Array(5).fill('404'));
    clock.set(NOON + 92 * DAY + HOUR);
    await api.caughtUp();
    await consumersCaughtUp(api);
    await forgetWhatExpired(api.runtime);
    expect([await rowsOf('expired_session'), await rowsOf('expired_reveal')]).toEqual([0, 0]);
    await rebuildAll();
    const after = await answers();
    expect(after.lines.map((line) => line.slice(0, 3))).toEqual(Array(5).fill('404'));
    expect(after.report.differences).toEqual([]);
    expect(after.units).toMatchObject({ billable_reveals: 3 });
    expect(after.counts).toEqual({ sessions: 2, reveals: 3, billable_reveals: 3, capture_requests: 2 });
  });

  it('have left the store or are hidden from readers', async () => {
    const left: string[] = [];
    for (const prefix of ['tab-', 'reveal-', 'expired-']) {
      const streams = await api.sql.query('select name from eventlog.stream where name ^@ $1', [prefix]);
      for (const { name } of streams.rows) {
        for await (const { stream } of api.runtime.store.readStream(name)) left.push(stream);
      }
    }
    expect(left).toEqual([]);
    if (_what === 'a store that deletes at once') {
      expect([await eventsOf('tab-'), await eventsOf('reveal-'), await eventsOf('expired-')]).toEqual([
        0, 0, 0,
      ]);
    }
  });
});
