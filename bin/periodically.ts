import cron, { type ScheduledTask } from 'node-cron';
import type { Logger } from '../platform/log.ts';
import { pause } from '../platform/pause.ts';

export type Job = readonly [schedule: string, run: () => Promise<unknown>];

/** A timer may end a little early, and the same time must not be found twice. */
const PAST_MS = 20;

/**
 * Runs jobs on their schedules until told to stop, without waiting for a run that is under way then; never two runs of
 * one job at once. The wait for a run is measured by the monotonic clock: a clock that is set back does not put off the
 * next run, and one that is set ahead makes no run up.
 */
export const periodically = async (signal: AbortSignal, log: Logger, jobs: readonly Job[]): Promise<void> => {
  for (const job of jobs) void repeat(signal, log, job);
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve());
  });
};

const repeat = async (signal: AbortSignal, log: Logger, [schedule, run]: Job): Promise<void> => {
  // Never started: it only says when the schedule is next due.
  const task = cron.createTask(schedule, () => undefined, { timezone: 'UTC' });
  try {
    while (!signal.aborted) {
      await pause(msToNext(task) + PAST_MS, signal);
      if (signal.aborted) return;
      await run().catch((error: unknown) =>
        log.warn({ error: String(error), schedule }, 'upkeep failed; it runs again on schedule'),
      );
    }
  } finally {
    await task.destroy();
  }
};

const msToNext = (task: ScheduledTask): number => {
  const [next] = task.getNextRuns(1);
  return Math.max(0, (next?.getTime() ?? 0) - Date.now());
};
