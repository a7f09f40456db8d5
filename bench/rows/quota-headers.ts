import { cpuOf } from '../../cli/installation/process-stats.ts';
import type { Row } from '../support/bench.ts';
import { startChild } from '../support/child.ts';
import { type Loaded, load } from '../support/load.ts';
import type { LoadPlan } from '../support/load-plan.ts';
import { median } from '../support/statistics.ts';
import { savedAnswer, savedPlan } from './saved-lookups.ts';

const START_MS = 10_000;
const SLICES = 7;

/**
 * What the `RateLimit` headers cost: the CPU that a bare Fastify route takes more with them, as a share of the CPU of a
 * saved lookup, service and PostgreSQL together.
 */
export const quotaHeaders: Row = {
  name: 'quota-headers',
  run: async (bench) => {
    const product = await bench.product();
    const { body, headers: all } = await savedAnswer(product);
    const headers = Object.fromEntries(Object.entries(all).filter(([name]) => !name.startsWith('ratelimit')));
    const bare = startChild('bare-route.ts', {
      method: 'GET',
      path: '/v1/lookup',
      status: 200,
      body,
      headers,
    });
    try {
      const ports = await bare.next<{ port: number; quotaPort: number }>(START_MS);
      const { rounds, warmUpSeconds, seconds } = bench.effort;
      const plan = savedPlan(product, { warmUpSeconds, seconds });
      const slice = { ...plan, warmUpSeconds: 0, seconds: 1 };
      const bareCpu = async (port: number, of: LoadPlan = slice) =>
        cpu(await load({ ...of, port }, { server: () => cpuOf(bare.pid) }));
      await bareCpu(ports.port, plan);
      await bareCpu(ports.quotaPort, plan);
      const more: number[] = [];
      const whole: number[] = [];
      for (let round = 0; round < rounds; round += 1) {
        // Short slices in turn, because the machine's speed changes from second to second.
        for (let pair = 0; pair < SLICES; pair += 1) {
          const first = await bareCpu(ports.port);
          const withQuota = await bareCpu(ports.quotaPort);
          more.push(withQuota - (first + (await bareCpu(ports.port))) / 2);
        }
        whole.push(cpu(await load(plan, product.meters)));
      }
      return [
        {
          row: 'RateLimit headers, of a saved lookup',
          ratio: median(more) / median(whole),
          target: { atMost: 0.02 },
          a: { of: 'CPU of a bare route, more with the headers', value: median(more), unit: ' µs' },
          b: { of: 'CPU of a saved lookup', value: median(whole), unit: ' µs' },
          notes: [`by slices of a second: ${more.map((value) => value.toFixed(2)).join(', ')} µs`],
        },
      ];
    } finally {
      await bare.end();
    }
  },
};

const cpu = ({ cpuMicros }: Loaded): number =>
  Object.values(cpuMicros).reduce((sum, micros) => sum + micros, 0);
