import type { StormProcess } from '../processes.ts';
import { describeUnready, waitUntilReady } from '../ready.ts';
import type { Violations } from '../violations.ts';
import { settle } from './settle.ts';

const CURRENT_MS = 30_000;

interface ListedProjection {
  readonly name: string;
  readonly state: string;
  readonly stopped_by: string | null;
}

/** Every process is ready, and every projection is current. */
export const checkRunning = async (
  processes: readonly StormProcess[],
  violations: Violations,
): Promise<void> => {
  if ((await waitUntilReady(processes, CURRENT_MS)) === null) {
    violations.add('every process is ready at the end', await describeUnready(processes));
  }
  const [one] = processes;
  const laggingProjections = await settle(async () => {
    const { code, stdout, stderr } = (await one?.cli('projection', 'list', '--json')) ?? {};
    if (code !== 0) return [`exit code ${code}: ${stderr}`];
    const listed = JSON.parse(stdout ?? '[]') as ListedProjection[];
    return listed.filter(({ state }) => state !== 'current').map((projection) => JSON.stringify(projection));
  }, CURRENT_MS);
  for (const projection of laggingProjections) {
    violations.add('every projection is current at the end', projection);
  }
};
