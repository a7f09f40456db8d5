import { residentMemory } from '../../cli/installation/process-stats.ts';
import type { Row } from '../support/bench.ts';
import { load } from '../support/load.ts';
import { savedAnswer, savedPlan } from './saved-lookups.ts';
import { newPlan } from './submissions.ts';

const LIMIT_MB = 220;

/**
 * The server process's resident memory after the loads of the rows before, and after another of either kind.
 * PostgreSQL is not included.
 */
export const memory: Row = {
  name: 'memory',
  run: async (bench) => {
    const product = await bench.product();
    const { warmUpSeconds, seconds } = bench.effort;
    await savedAnswer(product);
    await load(newPlan(bench, product));
    await product.settled();
    await load(savedPlan(product, { warmUpSeconds, seconds }));
    const used = residentMemory(product.service.pid);
    return [
      {
        row: 'memory after the load',
        ratio: used / LIMIT_MB,
        target: { atMost: 1 },
        a: { of: 'resident memory of the server', value: used, unit: ' MB' },
        b: { of: 'limit', value: LIMIT_MB, unit: ' MB' },
        notes: [],
      },
    ];
  },
};
