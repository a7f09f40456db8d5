import cron, { type ScheduledTask } from 'node-cron';
import type { Logger } from '../platform/log.ts';

export type Job = readonly [schedule: string, run: () => Promise<unknown>];

/** Runs jobs on their schedules until told to stop; never two runs of one job at once. */
export const periodically = async (signal: AbortSignal, log: Logger, jobs: readonly Job[]): Promise<void> => {
  const tasks: ScheduledTask[] = [];
  try {
    for (const [schedule, run] of jobs) tasks.push(start(log, schedule, run));
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve());
    });
  } finally {
    for (const task of tasks) await task.destroy();
  }
};

const start = (log: Logger, schedule: string, run: () => Promise<unknown>): ScheduledTask =>
  cron.schedule(
    schedule,
    () =>
      run().catch((error: unknown) =>
        log.warn({ error: String(error), schedule }, 'upkeep failed; it runs again on schedule'),
      ),
    { noOverlap: true, timezone: 'UTC' },
  );
