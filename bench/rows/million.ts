import pg from 'pg';
import { residentMemory } from '../../cli/installation/process-stats.ts';
import { sqlAddressOf } from '../support/addresses.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import { load } from '../support/load.ts';
import { type Product, startProduct } from '../support/product.ts';
import { alternate, median, medianRatio } from '../support/statistics.ts';
import { savedAnswer } from './saved-lookups.ts';

const SMALL_SIZE = 10_000;
const RATE = 200;
const CONNECTIONS = 10;
const MOST_SECONDS = 5;
const COLUMNS = 'match_type, network, company, sources, enriched_at, fresh_until, needs_company_enrichment';

/**
 * `GET /v1/lookup` at a low constant rate with few and with many results in the read model: the median wait. Two
 * services stand side by side, each with its own data. No address is requested twice, so that every answer comes from
 * PostgreSQL and none from the process's memory. The results are written to the read model's table directly: a
 * million enrichments would take longer than all the measurements.
 */
export const millionRow: Row = {
  name: 'million',
  run: async (bench) => {
    const few = await filled(bench, SMALL_SIZE);
    const many = await filled(bench, bench.effort.saved);
    try {
      return [await measure(bench, few, many)];
    } finally {
      await few.end();
      await many.end();
    }
  },
};

const filled = async (bench: Bench, count: number): Promise<Product> => {
  bench.say(`saving ${count} lookups`);
  const product = await startProduct(1);
  bench.defer(product.end);
  await savedAnswer(product);
  await product.settled();
  await product.beside(({ databaseUrl }) => copyResult(databaseUrl, count));
  return product;
};

/** Copies the one result that the projection has saved to this number of other addresses. */
const copyResult = async (url: string, count: number): Promise<void> => {
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  try {
    await db.query(
      `insert into read.saved_lookup (ip, ${COLUMNS})
       select ${sqlAddressOf('number')}, ${COLUMNS}
       from generate_series(0, $1::int - 1) number, (select * from read.saved_lookup limit 1) saved
       on conflict (ip) do nothing`,
      [count],
    );
    // As autovacuum would some time after the last of them.
    await db.query('vacuum (analyze) read.saved_lookup');
    await db.query('checkpoint');
  } finally {
    await db.end();
  }
};

const measure = async ({ effort }: Bench, few: Product, many: Product): Promise<Line> => {
  const { rounds, warmUpSeconds } = effort;
  const seconds = Math.min(effort.seconds, MOST_SECONDS);
  const requests = Math.ceil(RATE * (warmUpSeconds + seconds + 1));
  const p50 = async ({ port, keys }: Product, round: number, among: number): Promise<number> => {
    const result = await load({
      port,
      requests: { of: 'lookups', method: 'GET', keys, address: { first: round * requests, among } },
      connections: CONNECTIONS,
      rate: RATE,
      warmUpSeconds,
      seconds,
      expect: 200,
    });
    return result.p50;
  };
  const { a, b } = await alternate(
    rounds,
    (round) => p50(many, round, effort.saved),
    (round) => p50(few, round, SMALL_SIZE),
  );
  return {
    row: `GET with ${effort.saved.toLocaleString('en')} saved`,
    ratio: medianRatio(a, b),
    target: { atMost: 1.3 },
    a: { of: `p50 with ${effort.saved.toLocaleString('en')} saved`, value: median(a), unit: ' ms' },
    b: { of: `p50 with ${SMALL_SIZE.toLocaleString('en')} saved`, value: median(b), unit: ' ms' },
    notes: [
      `${RATE} requests a second, no address twice`,
      `the server's memory: ${residentMemory(many.service.pid).toFixed(0)} and ${residentMemory(few.service.pid).toFixed(0)} MB`,
    ],
  };
};
