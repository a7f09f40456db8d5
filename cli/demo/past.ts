/** The product in this process under a clock that is set by hand: its API, its projections and its processors. */
import { randomUUID } from 'node:crypto';
import { buildApi } from '../../bin/api.ts';
import { CONSUMERS, leadGroups } from '../../bin/groups.ts';
import { billingWork } from '../../bin/modules/billing.ts';
import { serviceUrl } from '../../bin/modules/domains.ts';
import { lookupWork, usageWork } from '../../bin/modules/lookup.ts';
import { depsOfReveals } from '../../bin/modules/reveals.ts';
import { openRuntime } from '../../bin/runtime.ts';
import { openWorkerContext } from '../../bin/worker-context.ts';
import { workerGroups } from '../../bin/workers.ts';
import { ownContext } from '../../commands/handle.ts';
import { createRevealSession } from '../../commands/reveals/reveal-session.ts';
import { createTrackerCommands } from '../../commands/trackers/manage-trackers.ts';
import { systemClock } from '../../platform/clock/clock.ts';
import { pause } from '../../platform/clock/waiting.ts';
import type { Config } from '../../platform/config/config.ts';
import { enterLeases } from '../../platform/leases/leases.ts';
import type { Logger } from '../../platform/telemetry/log.ts';
import { createMetrics } from '../../platform/telemetry/metrics.ts';
import { countOpenWork } from '../../queries/lookup/lookups.ts';

const CAUGHT_UP_MS = 30_000;
const POLL_MS = 5;
const ENRICHED_MS = 500;

type Sent = { readonly headers?: Readonly<Record<string, string>>; readonly body?: object | string };

export type Past = Awaited<ReturnType<typeof openPast>>;

/** Opens all of the product but what sends webhooks. @param start where its clock begins, milliseconds */
export async function openPast(config: Config, log: Logger, start: number) {
  let time = start;
  const runtime = await openRuntime(config, log, 'own', { clock: { now: () => time } });
  const { databaseUrl: url, store, clock, tail, progress, processed, pool } = runtime;
  // Leases say which process lives now, and nothing of what happened.
  const leases = await enterLeases({ url, role: 'command', clock: systemClock, log });
  runtime.providers.configured = leases.providers;
  const work = openWorkerContext(runtime, leases, createMetrics(), undefined);
  leadGroups(leases, workerGroups(runtime, leases), runtime);
  const enriching = await lookupWork(work).start?.();
  const api = await buildApi(runtime, leases, serviceUrl(config), () => true);
  const { host } = new URL(serviceUrl(config));
  const trackerCommands = createTrackerCommands(store, config.TRACKERS_PER_PARTNER);
  const revealSession = createRevealSession(depsOfReveals({ ...work, trackerCommands }));
  const ending = new AbortController();
  const jobs = [billingWork(work), usageWork(work)].flatMap((module) => module.jobs?.(ending.signal) ?? []);

  /** Waits until all projections and processors have handled what is in the log. */
  const caughtUp = async (): Promise<void> => {
    for (let head = null; head !== (await store.head()); ) {
      head = await store.head();
      const projections = progress.reached(CONSUMERS.projections, head, CAUGHT_UP_MS);
      const processors = processed.reached(CONSUMERS.processors, head, CAUGHT_UP_MS);
      tail.hurry();
      if (!(await projections) || !(await processors)) throw new Error('the read models do not catch up');
    }
  };
  return {
    runtime,
    caughtUp,
    /** Sets the clock to an instant, milliseconds; it never goes back. */
    advanceTo: (at: number): void => {
      time = Math.max(time, at);
    },
    /** Calls the API. `key`: null for the pixel. @throws Error on a refusal */
    call: async (key: string | null, method: 'GET' | 'POST', path: string, { headers, body }: Sent = {}) => {
      const answer = await api.app.inject({
        ...{ method, url: path, ...(body && { payload: body }) },
        headers: { host, ...(key && { authorization: `Bearer ${key}` }), ...headers },
      });
      if (answer.statusCode >= 400)
        throw new Error(`${method} ${path} answered ${answer.statusCode}: ${answer.body}`);
      return answer.body === '' ? null : answer.json();
    },
    /** Reveals a session as a user of the dashboard. */
    reveal: (partnerId: string, userId: string, sessionId: string) =>
      revealSession(
        { partnerId, sessionId, idempotencyKey: randomUUID() },
        { ...ownContext(clock, partnerId), userId },
      ),
    /** Lets half a second pass, in which what was asked for is enriched. */
    enriched: async (): Promise<void> => {
      await caughtUp();
      time += ENRICHED_MS;
      enriching?.nudge?.();
      while ((await countOpenWork(pool, 1)) > 0) await pause(POLL_MS);
      await caughtUp();
    },
    /** Runs what is due each day. */
    runJobs: async (): Promise<void> => {
      for (const [, run] of jobs) await run();
    },
    close: async (): Promise<void> => {
      ending.abort();
      await api.close();
      await enriching?.stop();
      await leases.stop();
      await runtime.close();
    },
  };
}
