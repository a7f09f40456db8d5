import cron from 'node-cron';
import { lead } from '../platform/leader.ts';
import { createListener } from '../platform/listener.ts';
import type { Metrics } from '../platform/metrics.ts';
import { sweepClaims } from '../processors/claims.ts';
import { startProcessor } from '../processors/follow.ts';
import { startEnrichmentAttempts } from '../processors/lookup/attempt-enrichments.ts';
import { buildChain } from '../processors/lookup/chain.ts';
import { settleEndedWork } from '../processors/lookup/settle-ended-work.ts';
import { submitLeftReservations } from '../processors/lookup/submit-left-reservations.ts';
import { truncateIntakes } from '../processors/lookup/truncate-intakes.ts';
import { closeUsageStreams, expireUsageStreams } from '../processors/usage/close-usage-streams.ts';
import { allProjections } from '../projections/all.ts';
import { DUE_CHANNEL } from '../projections/lookup/lookups.ts';
import { startProjections } from '../projections/runner.ts';
import { forgetUsageBefore } from '../projections/usage/lookup-counts.ts';
import type { Foundation } from './foundation.ts';

export interface Workers {
  /** Projections and processors that an event has stopped. */
  stopped(): readonly string[];
  close(): Promise<void>;
}

/**
 * Projections, processors and what is periodic. Any number of processes may run them. `makeChain`: where the
 * providers come from.
 */
export const startWorkers = async (
  foundation: Foundation,
  metrics: Metrics,
  makeChain: typeof buildChain = buildChain,
): Promise<Workers> => {
  const {
    config,
    log,
    clock,
    pool,
    store,
    intake,
    digest,
    databaseUrl: url,
    progress,
    processed,
  } = foundation;
  const stopped = new Set<string>();
  const streams = { store, digest, intake };
  const onStopped = (name: string): void => {
    stopped.add(name);
    metrics.stopped.set({ name }, 1);
  };

  const onRunning = (name: string): void => {
    stopped.delete(name);
    metrics.stopped.set({ name }, 0);
  };

  const projections = startProjections({
    store,
    url,
    projections: allProjections,
    progress,
    log,
    onApplied: (names, lastEventAt) => metrics.applied(names, lastEventAt, clock.now()),
    onStopped: (name) => onStopped(`projection ${name}`),
    onRunning: (names) => {
      for (const name of names) onRunning(`projection ${name}`);
    },
  });

  const settling = startProcessor(settleEndedWork(streams, clock), {
    store,
    url,
    log,
    onPassed: (name, position) => processed.advance({ [name]: position }),
    onStopped: (name) => onStopped(`processor ${name}`),
  });

  const chain = await makeChain(config, log);
  const attempts = startEnrichmentAttempts({
    ...streams,
    pool,
    clock,
    log,
    chain: chain.providers,
    attemptMs: chain.longestMs,
    retryBaseMs: config.RETRY_BASE_SECONDS * 1_000,
    random: Math.random,
    onAttempt: (outcome) => metrics.attempts.inc({ outcome }),
  });
  const due = createListener({ url, name: 'doorplate due', channels: [DUE_CHANNEL], heard: attempts.nudge });
  due.ensure();

  const upkeep = lead({
    name: 'upkeep',
    url,
    log,
    run: (_db, signal) =>
      periodically(signal, log, [
        ['*/5 * * * * *', () => submitLeftReservations({ ...streams, pool, clock, log })],
        ['7 * * * *', () => sweepClaims(pool, clock.now())],
        ['*/10 * * * *', () => closeUsageStreams({ store, pool, clock })],
        [
          '23 3 * * *',
          () => expireUsageStreams({ store, pool, clock }, (before) => forgetUsageBefore(pool, before)),
        ],
        ['37 3 * * *', () => truncateIntakes({ store, pool, clock })],
      ]),
  });

  return {
    stopped: () => [...stopped],
    close: async () => {
      await upkeep.stop();
      await due.close();
      await attempts.stop();
      await settling.stop();
      await projections.stop();
      await chain.close();
    },
  };
};

type Job = readonly [schedule: string, run: () => Promise<unknown>];

/** Runs jobs on their schedules until told to stop; never two runs of one job at once. */
const periodically = async (
  signal: AbortSignal,
  log: Foundation['log'],
  jobs: readonly Job[],
): Promise<void> => {
  const tasks = jobs.map(([schedule, run]) =>
    cron.schedule(
      schedule,
      () =>
        run().catch((error: unknown) =>
          log.warn({ error: String(error), schedule }, 'upkeep failed, and is tried again'),
        ),
      { noOverlap: true, timezone: 'UTC' },
    ),
  );
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve());
  });
  for (const task of tasks) await task.destroy();
};
