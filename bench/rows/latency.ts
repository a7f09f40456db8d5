import type { Bench, Line, Row } from '../support/bench.ts';
import { type Loaded, load } from '../support/load.ts';
import type { LoadPlan, Lookups } from '../support/load-plan.ts';
import { savedAnswer, savedPlan } from './saved-lookups.ts';
import { newPlan } from './submissions.ts';

const SHARE = 0.1;

/**
 * The wait of a caller at a tenth of the largest load of the rows before, at a constant rate: GET of a saved result,
 * and POST of a new address. For information.
 */
export const latency: Row = {
  name: 'latency',
  run: async (bench) => {
    const product = await bench.product();
    const { warmUpSeconds, rounds, seconds } = bench.effort;
    const times = { warmUpSeconds, seconds: (rounds * seconds) / 2 };
    await savedAnswer(product);
    const saved = savedPlan(product, times);
    const fresh = newPlan(bench, product, times);
    return [
      await measure(bench, 'saved lookups', 'GET saved', saved),
      await measure(bench, 'submissions', 'POST new', fresh).finally(product.settled),
    ];
  },
};

const measure = async (
  bench: Bench,
  what: 'saved lookups' | 'submissions',
  row: string,
  plan: LoadPlan<Lookups>,
): Promise<Line> => {
  const most = bench.maxima.get(what) ?? (await shortly(bench, what, plan)).perSecond;
  const rate = Math.max(1, Math.round(most * SHARE));
  const { requests } = plan;
  const address = what === 'saved lookups' ? requests.address : { first: bench.freshAddresses(1_000_000) };
  const { p50, p99, perSecond } = await load({ ...plan, requests: { ...requests, address }, rate });
  return {
    row: `${row} at a tenth of the load`,
    ratio: p99 / p50,
    target: null,
    a: { of: 'p99', value: p99, unit: ' ms' },
    b: { of: 'p50', value: p50, unit: ' ms' },
    notes: [`at ${perSecond.toFixed(0)} requests a second`],
  };
};

/** The largest load, when the row that finds it has not run. */
const shortly = (bench: Bench, what: string, plan: LoadPlan): Promise<Loaded> => {
  bench.say(`finding the largest load of ${what}`);
  return load({ ...plan, seconds: bench.effort.seconds });
};
