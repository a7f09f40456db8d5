/** The product in this process under a clock that is set by hand: its API, its projections and its processors. */
import { buildApi } from '../../bin/api.ts';
import { CONSUMERS, leadGroups } from '../../bin/groups.ts';
import { billingWork } from '../../bin/modules/billing.ts';
import { serviceUrl } from '../../bin/modules/domains.ts';
import { lookupWork, usageWork } from '../../bin/modules/lookup.ts';
import { openRuntime, type Runtime } from '../../bin/runtime.ts';
import { openWorkerContext } from '../../bin/worker-context.ts';
import { workerGroups } from '../../bin/workers.ts';
import { systemClock } from '../../platform/clock/clock.ts';
import { pause } from '../../platform/clock/waiting.ts';
import type { Config } from '../../platform/config/config.ts';
import { enterLeases } from '../../platform/leases/leases.ts';
import type { Logger } from '../../platform/telemetry/log.ts';
import { createMetrics } from '../../platform/telemetry/metrics.ts';
import { countOpenWork } from '../../queries/lookup/lookups.ts';

export interface Past {
  readonly runtime: Runtime;
  /** Sets the clock to an instant, milliseconds; an earlier one is ignored. */
  advanceTo(at: number): void;
  /** Calls the API as a partner does. `key`: null for the pixel. @throws Error on a refusal */
  call(key: string | null, method: 'GET' | 'POST', url: string, sent?: Sent): Promise<Answer>;
  /** Waits until all projections and processors have handled what is in the log. */
  caughtUp(): Promise<void>;
  /** Waits until no enrichment is open. */
  enriched(): Promise<void>;
  /** Runs the jobs that are due daily. */
  dailyJobs(): Promise<void>;
  close(): Promise<void>;
}

interface Sent {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object | string;
}

// biome-ignore lint/suspicious/noExplicitAny: answers of the API, whose fields its own tests check
type Answer = any;

const CAUGHT_UP_MS = 30_000;
const POLL_MS = 5;

/** @param start milliseconds: where its clock begins */
export async function openPast(config: Config, log: Logger, start: number): Promise<Past> {
  let time = start;
  const clock = { now: () => time };
  const runtime = await openRuntime(config, log, 'own', { clock });
  const { databaseUrl: url, store, tail, progress, processed, pool } = runtime;
  // Leases tell which process lives now, and not what happened.
  const leases = await enterLeases({ url, role: 'command', clock: systemClock, log });
  runtime.otherProcesses.run = leases.hasOthers;
  runtime.providers.configured = leases.providers;
  const context = openWorkerContext(runtime, leases, createMetrics(), undefined);
  leadGroups(leases, workerGroups(runtime, leases), runtime);
  const enriching = await lookupWork(context).start?.();
  const publicUrl = serviceUrl(config);
  const api = await buildApi(runtime, leases, publicUrl, () => true);
  const ending = new AbortController();
  const jobs = [billingWork(context), usageWork(context)].flatMap((work) => work.jobs?.(ending.signal) ?? []);

  const caughtUp = async (): Promise<void> => {
    for (;;) {
      const head = await store.head();
      const [projections, processors] = [
        progress.reached(CONSUMERS.projections, head, CAUGHT_UP_MS),
        processed.reached(CONSUMERS.processors, head, CAUGHT_UP_MS),
      ];
      tail.hurry();
      if (!(await projections) || !(await processors)) throw new Error('the read models do not catch up');
      if ((await store.head()) === head) return;
    }
  };
  return {
    runtime,
    caughtUp,
    advanceTo: (at) => {
      time = Math.max(time, at);
    },
    call: async (key, method, path, { headers = {}, body } = {}) => {
      const answer = await api.app.inject({
        method,
        url: path,
        headers: {
          host: new URL(publicUrl).host,
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...headers,
        },
        ...(body === undefined ? {} : { payload: body }),
      });
      if (answer.statusCode >= 400 && answer.statusCode !== 404)
        throw new Error(`${method} ${path} answered ${answer.statusCode}: ${answer.body}`);
      return answer.body === '' ? null : answer.json();
    },
    enriched: async () => {
      enriching?.nudge?.();
      while ((await countOpenWork(pool, 1)) > 0) await pause(POLL_MS);
      await caughtUp();
    },
    dailyJobs: async () => {
      for (const [, run] of jobs) await run();
    },
    close: async () => {
      ending.abort();
      await api.close();
      await enriching?.stop();
      await leases.stop();
      await runtime.close();
    },
  };
}
