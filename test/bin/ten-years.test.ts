/** Ten years of a partner: what is kept has the size of the last months, and not of the years. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  CONSUMERS,
  forgetOldDeliveries,
  forgetOldEndpoints,
  forgetOldResults,
  forgetWhatExpired,
  snapshotOldEnrichments,
  sweepToEnd,
} from '../../bin/retention.ts';
import { DAY, HOUR, utcDay } from '../../domain/kernel/time.ts';
import { INTAKE_KEPT_DAYS } from '../../domain/lookup/intake.ts';
import { sweepClaims } from '../../processors/claims.ts';
import { createPassage } from '../../processors/consumers.ts';
import { truncateIntakes } from '../../processors/lookup/truncate-intakes.ts';
import { closeTrackerDays } from '../../processors/usage/close-tracker-days.ts';
import { closeUsageStreams, expireUsageStreams } from '../../processors/usage/close-usage-streams.ts';
import { forgetReservationsBefore } from '../../projections/lookup/lookups.ts';
import { forgetUsageBefore } from '../../projections/usage/lookup-counts.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';
import { until } from '../support/until.ts';

const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let key: Key;
let tracker: string;
beforeAll(async () => {
  provider.saysElse(aCompany('Acme'));
  api = await startApi({ clock, providers: [provider] });
  key = await api.key();
  tracker = await makeTracker(api, key);
});
afterAll(() => api.close());

const passed = async () => {
  const { pool, store } = api.foundation;
  const passage = createPassage(pool, CONSUMERS);
  await until('all have passed', async () => passage.come(await store.head(), new AbortController().signal));
};

/** Two lookups, a visit and its reveal, an endpoint that comes and goes. */
const work = async (period: number) => {
  for (const ip of [`8.8.${period}.1`, `8.8.${period}.2`]) {
    await api.post(key, ip);
    await api.settled(key, ip);
  }
  const payload = { name: 'receiver', url: 'https://receiver.example.com/', events: ['session.created'] };
  const { id } = (await api.inject(key, { method: 'POST', url: '/v1/webhooks', payload })).json();
  await collect(api, tracker, { ip: `8.8.${period}.1` });
  const session = (await feed(api, key)).sessions.at(-1)?.session_id;
  const headers = { 'idempotency-key': randomUUID() };
  const url = `/v1/sessions/${session}/reveal`;
  expect((await api.inject(key, { method: 'POST', url, headers })).statusCode).toBe(200);
  await api.inject(key, { method: 'DELETE', url: `/v1/webhooks/${id}` });
};

/** What workers do in a period of many days: each job twice, as one finds what another has left. */
const upkeep = async () => {
  const { foundation } = api;
  const { store, pool, dayKeys } = foundation;
  const upkeepParts = { store, pool, clock };
  const run = { signal: new AbortController().signal, forMs: 60_000, onBlocked: () => undefined };
  for (const _ of ['once', 'again']) {
    await api.caughtUp();
    await passed();
    await closeTrackerDays({ ...upkeepParts, caughtUp: async () => true });
    await closeUsageStreams(upkeepParts);
    await expireUsageStreams(upkeepParts, (before) => forgetUsageBefore(pool, before));
    await api.caughtUp();
    await passed();
    await sweepToEnd(foundation);
    await snapshotOldEnrichments(foundation, run);
    await forgetOldResults(foundation, run.signal);
    await forgetOldEndpoints(foundation);
    await forgetOldDeliveries(foundation);
    await forgetWhatExpired(foundation);
    await forgetReservationsBefore(pool, utcDay(clock.now() - INTAKE_KEPT_DAYS * DAY));
    await truncateIntakes(upkeepParts);
    await dayKeys.destroyExpired();
    await sweepClaims(pool, clock.now());
  }
};

/** Rows by table, and events by the kind of their stream. */
const sizes = async (): Promise<Map<string, number>> => {
  const { rows: tables } = await api.sql.query<{ name: string }>(
    `select schemaname || '.' || relname as name from pg_stat_user_tables where schemaname in ('read', 'work') order by 1`,
  );
  const counted = new Map<string, number>();
  for (const { name } of tables) {
    const { rows } = await api.sql.query<{ n: number }>(`select count(*)::int as n from ${name}`);
    counted.set(name, rows[0]?.n ?? 0);
  }
  const { rows } = await api.sql.query<{ kind: string; n: number }>(
    `select split_part(stream, '-', 1) as kind, count(*)::int as n from eventlog.event group by 1`,
  );
  for (const { kind, n } of rows) counted.set(`events of ${kind}`, n);
  return counted;
};

/** What lives for ever: the ledger, a unit for each reveal. */
const FOR_EVER = ['events of billing', 'read.reveal_unit'];

it('ten years of a partner leave what the last months leave, apart from the ledger', async () => {
  const grown: string[] = [];
  let before = new Map<string, number>();
  for (let period = 0; period < 20; period += 1) {
    await work(period);
    clock.advance(182 * DAY + HOUR);
    await upkeep();
    if (period === 7) before = await sizes();
  }
  for (const [name, n] of await sizes()) {
    if (!FOR_EVER.includes(name) && n > (before.get(name) ?? 0) + 1)
      grown.push(`${name}: ${before.get(name)}, ${n}`);
  }
  expect(grown).toEqual([]);
}, 240_000);
