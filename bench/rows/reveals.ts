import type { Row } from '../support/bench.ts';
import { load } from '../support/load.ts';
import { createRevealable, VISITORS } from '../support/tracking.ts';

const RATE = 100;
const CONNECTIONS = 20;

/** `POST …/reveal` of sessions whose address has a saved result, each of another session, at 100 a second. For information. */
export const reveals: Row = {
  name: 'reveals',
  run: async (bench) => {
    const { warmUpSeconds, rounds, seconds } = bench.effort;
    const product = await bench.product();
    const beginSessions = await createRevealable(product, bench.freshAddresses(VISITORS));
    const measuredSeconds = (rounds * seconds) / 2;
    const sessions = await beginSessions(RATE * (warmUpSeconds + measuredSeconds));
    const { p50, p99, cpuMicros } = await load(
      {
        port: product.port,
        requests: {
          of: 'reveals',
          key: product.keys[0] ?? '',
          sessions,
        },
        connections: CONNECTIONS,
        rate: RATE,
        warmUpSeconds,
        seconds: measuredSeconds,
        expect: 200,
      },
      product.meters,
    );
    await product.followed();
    return [
      {
        row: `reveal of a saved result at ${RATE}/s`,
        ratio: p99 / p50,
        target: null,
        a: { of: 'p99', value: p99, unit: ' ms' },
        b: { of: 'p50', value: p50, unit: ' ms' },
        notes: [
          `CPU a reveal, with its ledger entry and read models: server ${cpuMicros.server?.toFixed(0)} µs and PostgreSQL ${cpuMicros.PostgreSQL?.toFixed(0)} µs`,
        ],
      },
    ];
  },
};
