/**
 * Generates a load at a rate in a separate process. Argument: a `LoadPlan` with a rate. Prints `{}` when the measured time begins and
 * a `LoadResult` at its end.
 */
import { load } from '../cli/installation/load.ts';
import type { LoadPlan, LoadResult } from './support/load-plan.ts';
import { requestsOf } from './support/requests.ts';
import { percentile } from './support/statistics.ts';

const plan = JSON.parse(process.argv[2] ?? '') as LoadPlan & { rate: number };
const { port, rate, connections, expect, warmUpSeconds } = plan;
const common = { url: `http://127.0.0.1:${port}`, request: requestsOf(plan), expect, rate, connections };
const run = (seconds: number, first: number) =>
  load({ ...common, seconds, underWay: Number.POSITIVE_INFINITY }, first);

const { length: first } = await run(warmUpSeconds, 0);
process.stdout.write('{}\n');
const begin = performance.now();
const cpuBefore = process.cpuUsage();
const latencies = Float64Array.from(await run(plan.seconds, first));
const { user, system } = process.cpuUsage(cpuBefore);
const result: LoadResult = {
  answers: latencies.length,
  seconds: (performance.now() - begin) / 1_000,
  p50: percentile(latencies, 0.5),
  p99: percentile(latencies, 0.99),
  sent: first + latencies.length,
  ownCpu: (user + system) / 1e6,
};
process.stdout.write(`${JSON.stringify(result)}\n`);
