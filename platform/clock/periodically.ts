import cron, { type ScheduledTask } from 'node-cron';
import type { Logger } from '../telemetry/log.ts';
import { pause } from './waiting.ts';

export type Job = readonly [schedule: string, run: () => Promise<unknown>];

/** A timer may fire slightly early, and must not find the same time again. */
const PAST_MS = 20;

/**
 * Runs jobs on their schedules until the signal aborts, without waiting for running ones; runs of one job never overlap. Waits
 * use the monotonic clock: setting the clock back delays no run, and setting it ahead makes up for none.
 */
export async function periodically(signal: AbortSignal, log: Logger, jobs: readonly Job[]): Promise<void> {
  for (const job of jobs) void repeat(signal, log, job);
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve());
  });
}

async function repeat(signal: AbortSignal, log: Logger, [schedule, run]: Job): Promise<void> {
  // Never started: only its schedule is used.
  const task = cron.createTask(schedule, () => undefined, { timezone: 'UTC' });
  try {
    while (!signal.aborted) {
      await pause(msToNext(task) + PAST_MS, signal);
      if (signal.aborted) return;
      await run().catch((error: unknown) =>
        log.warn({ error: String(error), schedule }, 'upkeep job failed; it runs again on schedule'),
      );
    }
  } finally {
    await task.destroy();
  }
}

function msToNext(task: ScheduledTask): number {
  const [next] = task.getNextRuns(1);
  return Math.max(0, (next?.getTime() ?? 0) - Date.now());
}

const RESTART_MS = 500;

/** Runs a part of the service until the signal aborts, and again after a failure, which it logs. */
export async function restarting(
  what: string,
  log: Logger,
  signal: AbortSignal,
  run: () => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await run();
    } catch (error) {
      if (!signal.aborted)
        log.warn({ part: what, error: String(error) }, 'part of a group failed; restart scheduled');
    }
    await pause(RESTART_MS, signal);
  }
}
