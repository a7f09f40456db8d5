import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sweepToEnd } from '../../bin/retention.ts';
import { DAY } from '../../domain/kernel/time.ts';
import { createConsumerProgress } from '../../processors/consumers.ts';
import { closeTrackerDays } from '../../processors/usage/close-usage-streams.ts';
import { type Key, manualClock, NOON, startApi, type TestApi } from '../support/api.ts';
import { consumersCaughtUp } from '../support/consumers-caught-up.ts';
import { collect, makeTracker } from '../support/tracking.ts';
import { until } from '../support/until.ts';

/** The consumers of a visit's events. */
const READERS = { projections: ['sessions', 'tracker-usage'], processors: ['queue-webhook-events'] };

const clock = manualClock();
let api: TestApi;
let key: Key;
beforeAll(async () => {
  api = await startApi({ clock });
  key = await api.key();
});
afterAll(() => api.close());

it('deletes what has expired while an event has stopped consumers that read none of it', async () => {
  const { store, pool } = api.runtime;
  const tracker = await makeTracker(api, key);
  await consumersCaughtUp(api);
  const metadata = {
    $correlationId: 'a-request',
    $causationId: 'a-request',
    at: new Date(NOON).toISOString(),
  };
  const unreadable = { id: randomUUID(), type: 'domains.DomainClaimed.v1', data: {}, metadata };
  await store.append('domain-visits.example.com', 'no_stream', [unreadable]);
  const stopped = async () =>
    (
      await api.sql.query(
        `select name from read.projection where stopped_by is not null
         union all select name from work.processor where stopped_by is not null order by name`,
      )
    ).rows.map(({ name }) => name);
  await until('the event has stopped its consumers', async () => (await stopped()).length === 2);
  expect(await stopped()).toEqual(['domains', 'keep-domains']);

  await collect(api, tracker, { ip: '5.9.0.1' });
  const readers = createConsumerProgress(pool, READERS);
  const read = async () => readers.waitFor(await store.head(), new AbortController().signal);
  expect(await read()).toBe(true);
  clock.set(NOON + 31 * DAY);
  await closeTrackerDays({ ...api.runtime, caughtUp: async () => true });
  expect(await read()).toBe(true);
  await sweepToEnd(api.runtime);
  const { rows } = await api.sql.query(`select stream from eventlog.event where stream ^@ 'tab-'`);
  expect(rows).toEqual([]);
});
