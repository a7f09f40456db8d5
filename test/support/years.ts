/** A partner's ordinary days over years, and the upkeep in between: for tests and the bench. */
import { randomUUID } from 'node:crypto';
import {
  forgetOldDeliveries,
  forgetOldEndpoints,
  forgetOldResults,
  forgetWhatExpired,
  snapshotOldEnrichments,
  sweepToEnd,
} from '../../bin/retention.ts';
import { DAY, utcDay } from '../../domain/kernel/time.ts';
import { INTAKE_KEPT_DAYS } from '../../domain/lookup/intake.ts';
import { sweepRates } from '../../platform/limits/rate-limit.ts';
import { sweepClaims } from '../../processors/claims.ts';
import { forgetProviderDays } from '../../processors/lookup/providers/provider-counts.ts';
import { truncateIntakes } from '../../processors/lookup/settle-reservations.ts';
import { forgetNames } from '../../processors/retire-streams.ts';
import { forgetInstallEvidence } from '../../processors/sessions/install-evidence.ts';
import {
  closeTrackerDays,
  closeUsageStreams,
  expireUsageStreams,
} from '../../processors/usage/close-usage-streams.ts';
import { forgetActivity } from '../../projections/activity/activity.ts';
import { forgetReservationsBefore } from '../../projections/lookup/lookups.ts';
import { forgetUsageBefore } from '../../projections/usage/lookup-counts.ts';
import { type ApiOptions, type Key, type ManualClock, manualClock, startApi, type TestApi } from './api.ts';
import { consumersCaughtUp } from './consumers-caught-up.ts';
import { aCompany, scriptedProvider } from './providers.ts';
import { collect, feed, makeTracker } from './tracking.ts';
import { until } from './until.ts';

export interface OrdinaryDay {
  /** The number of addresses that are looked up; the partner has never requested them before. */
  readonly lookups: number;
  /**
   * The number of visits, each from an address that was looked up on this day, with a notification to an endpoint.
   */
  readonly visits: number;
  readonly reveals: number;
}

export interface Years {
  readonly api: TestApi;
  readonly clock: ManualClock;
  readonly key: Key;
  /** A partner's actions on one day: lookups, an endpoint that is created and deleted, visits and reveals. */
  work(day: OrdinaryDay): Promise<void>;
  upkeep(): Promise<void>;
}

const ROOM = {
  CAPTURES_PER_SECOND: '100000',
  CAPTURES_PER_SECOND_PER_TRACKER: '100000',
  CAPTURES_PER_SECOND_PER_VISITOR: '100000',
  REVEALS_PER_SECOND: '100000',
};

/** A service with one partner and a manual clock at noon of an early year. */
export const openYears = async (options: Pick<ApiOptions, 'database' | 'env'> = {}): Promise<Years> => {
  const clock = manualClock();
  const provider = scriptedProvider();
  provider.saysOtherwise(aCompany('Acme'));
  const api = await startApi({
    clock,
    providers: [provider],
    ...options,
    env: { ...ROOM, ...options.env },
  });
  const key = await api.key();
  const tracker = await makeTracker(api, key);
  let address = 0;

  const lookUp = async (): Promise<string> => {
    address += 1;
    const ip = `9.${(address >> 16) & 255}.${(address >> 8) & 255}.${address & 255}`;
    await api.post(key, ip);
    await api.settled(key, ip);
    return ip;
  };
  const send = async (method: 'POST' | 'DELETE', url: string, rest: object = {}) => {
    const answer = await api.inject(key, { method, url, ...rest });
    if (answer.statusCode >= 300) throw new Error(`${method} ${url} was answered ${answer.statusCode}`);
    return answer.body === '' ? null : answer.json();
  };
  const sessionsOfToday = async (count: number): Promise<unknown[]> => {
    const ids: unknown[] = [];
    for (let cursor = ''; ids.length < count; ) {
      const page = await feed(api, key, `limit=100${cursor}`);
      ids.push(...page.sessions.map(({ session_id }) => session_id));
      cursor = `&cursor=${page.next_cursor}`;
    }
    return ids.slice(-count);
  };
  const work = async ({ lookups, visits, reveals }: OrdinaryDay): Promise<void> => {
    const ips = await Promise.all(Array.from({ length: lookups }, lookUp));
    const payload = { name: 'receiver', url: 'https://receiver.invalid/', events: ['session.created'] };
    const { id } = await send('POST', '/v1/webhooks', { payload });
    for (let n = 0; n < visits; n += 1) await collect(api, tracker, { ip: ips[n % lookups] ?? '' });
    for (const session of await sessionsOfToday(reveals)) {
      const headers = { 'idempotency-key': randomUUID() };
      await send('POST', `/v1/sessions/${session}/reveal`, { headers });
    }
    await send('DELETE', `/v1/webhooks/${id}`);
    await api.runtime.providerCounts.flush();
    await api.runtime.evidence.flush();
    // The first flush may find one on its way.
    await until('the uses of this day are written', async () => {
      await api.runtime.lookupUses.flush();
      const uses = 'select from work.lookup_use where asked_on = $1::date';
      return ((await api.sql.query(uses, [utcDay(clock.now())])).rowCount ?? 0) >= lookups;
    });
  };
  return { api, clock, key, work, upkeep: () => upkeepOf(api, clock) };
};

/** Runs all jobs, each twice, because one run leaves work for the next. */
export const upkeepOf = async (api: TestApi, clock: ManualClock): Promise<void> => {
  const { runtime } = api;
  const { store, pool, dayKeys } = runtime;
  const parts = { store, pool, clock };
  const run = { signal: new AbortController().signal, forMs: 60_000, onBlocked: () => undefined };
  for (const _ of ['once', 'again']) {
    await consumersCaughtUp(api);
    await closeTrackerDays({ ...parts, waitForHead: async () => true });
    await closeUsageStreams(parts);
    await expireUsageStreams(parts, (before) => forgetUsageBefore(pool, before));
    await consumersCaughtUp(api);
    await sweepToEnd(runtime);
    await snapshotOldEnrichments(runtime, run);
    await forgetOldResults(runtime, run.signal);
    await forgetOldEndpoints(runtime);
    await forgetOldDeliveries(runtime);
    await forgetWhatExpired(runtime);
    await forgetNames(runtime);
    await forgetReservationsBefore(pool, utcDay(clock.now() - INTAKE_KEPT_DAYS * DAY));
    await forgetProviderDays(pool, clock.now());
    await truncateIntakes(parts);
    await dayKeys.destroyExpired();
    // Counts are stored while a process is not sure to be the only one, as on a slow machine.
    await sweepRates(pool, clock.now());
    await sweepClaims(pool, clock.now());
    await forgetInstallEvidence(pool, clock.now());
    await forgetActivity(pool, clock.now());
  }
};
