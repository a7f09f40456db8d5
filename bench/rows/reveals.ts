import type { Row } from '../support/bench.ts';
import { load } from '../support/load.ts';
import { capture, createTracker, readFeed } from '../support/tracking.ts';
import { SAVED_ADDRESS, savedAnswer } from './saved-lookups.ts';

const RATE = 100;
const CONNECTIONS = 20;
const SESSIONS = 10;

/**
 * `POST …/reveal` of sessions whose address has a saved result, each time a new reveal, at 100 a second. For
 * information.
 */
export const reveals: Row = {
  name: 'reveals',
  run: async (bench) => {
    const { warmUpSeconds, rounds, seconds } = bench.effort;
    const product = await bench.product();
    await savedAnswer(product);
    const tracker = await createTracker(product);
    for (let n = 0; n < SESSIONS; n += 1) await capture(product, tracker, SAVED_ADDRESS);
    const { sessions } = await readFeed(product, tracker);
    const { p50, p99, cpuMicros } = await load(
      {
        port: product.port,
        requests: {
          of: 'reveals',
          key: product.keys[0] ?? '',
          sessions: sessions.map(({ session_id }) => session_id),
        },
        connections: CONNECTIONS,
        rate: RATE,
        warmUpSeconds,
        seconds: (rounds * seconds) / 2,
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
