import cron from 'node-cron';
import type { Logger } from '../platform/log.ts';

export type Job = readonly [schedule: string, run: () => Promise<unknown>];

/** Runs jobs on their schedules until told to stop; never two runs of one job at once. */
export const periodically = async (signal: AbortSignal, log: Logger, jobs: readonly Job[]): Promise<void> => {
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
