import type { Row } from '../support/bench.ts';
import { startChild } from '../support/child.ts';
import { type Loaded, load } from '../support/load.ts';
import { cpuOf } from '../support/proc.ts';
import { median } from '../support/statistics.ts';
import { savedAnswer, savedPlan } from './saved-lookups.ts';

const START_MS = 10_000;

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
    const answer = { method: 'GET', path: '/v1/lookup', status: 200, body, headers } as const;
    const plain = startChild('bare-route.ts', answer);
    const quota = startChild('bare-route.ts', { ...answer, quota: true });
    try {
      const [plainPort, quotaPort] = await Promise.all(
        [plain, quota].map(async (child) => (await child.next<{ port: number }>(START_MS)).port),
      );
      const { rounds, warmUpSeconds, seconds } = bench.effort;
      const plan = savedPlan(product, { warmUpSeconds, seconds });
      const more: number[] = [];
      const whole: number[] = [];
      // Two of each a round, in the order that a slow change of the machine's speed does not favour.
      for (let round = 0; round < 2 * rounds; round += 1) {
        const bare = async (port: number | undefined, pid: number) =>
          cpu(await load({ ...plan, port: port ?? 0 }, { server: () => cpuOf(pid) }));
        const [first, second, third] = [
          await bare(plainPort, plain.pid),
          await bare(quotaPort, quota.pid),
          await bare(plainPort, plain.pid),
        ];
        more.push(second - (first + third) / 2);
        whole.push(cpu(await load(plan, product.meters)));
      }
      return [
        {
          row: 'RateLimit headers, of a saved lookup',
          ratio: median(more) / median(whole),
          target: { atMost: 0.02 },
          a: { of: 'CPU of a bare route, more with the headers', value: median(more), unit: ' µs' },
          b: { of: 'CPU of a saved lookup', value: median(whole), unit: ' µs' },
          notes: [`by rounds: ${more.map((value) => value.toFixed(2)).join(', ')} µs`],
        },
      ];
    } finally {
      await Promise.all([plain.end(), quota.end()]);
    }
  },
};

const cpu = ({ cpuMicros }: Loaded): number =>
  Object.values(cpuMicros).reduce((sum, micros) => sum + micros, 0);
