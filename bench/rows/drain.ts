import { startWebhookSink, type WebhookSink } from '../support/bare-deliveries.ts';
import type { Bench, Row } from '../support/bench.ts';
import type { Product } from '../support/product.ts';
import { alternate, compared, median } from '../support/statistics.ts';
import { createTracker } from '../support/tracking.ts';
import { createEndpoint, startDelivering } from '../support/webhooks.ts';
import { writeSessions } from './deliveries.ts';

const FEW = 64;
const MANY = 256;
const SESSIONS = 7_000;
/** Shares of the backlog between which the rate is taken. */
const FROM = 0.15;
const TO = 0.95;

interface Drained {
  readonly perSecond: number;
  /** CPU a delivery, of the process and of PostgreSQL, microseconds. */
  readonly cpuMicros: number;
  readonly postgresMicros: number;
}

/** The backlog of one endpoint with 64 attempts at once, against the same with 256, the products side by side. */
export const drain: Row = {
  name: 'drain',
  run: async (bench) => {
    const sink = await startWebhookSink();
    bench.defer(sink.end);
    const few = await startSide(bench, sink, FEW);
    const many = await startSide(bench, sink, MANY);
    const { a, b } = await alternate(bench.effort.rounds, few.measure, many.measure);
    await few.end();
    await many.end();
    await sink.end();
    const rates = (some: readonly Drained[]) => some.map(({ perSecond }) => perSecond);
    const cpu = (of: string, some: readonly Drained[]) =>
      `CPU a delivery, ${of}: server ${median(some.map((one) => one.cpuMicros)).toFixed(0)} µs and PostgreSQL ${median(some.map((one) => one.postgresMicros)).toFixed(0)} µs`;
    return [
      {
        row: "drain of one endpoint's backlog",
        ...compared(
          { of: `${FEW} at once`, values: rates(a) },
          { of: `${MANY} at once`, values: rates(b) },
          '/s',
        ),
        target: { atLeast: 0.8 },
        notes: [cpu(`${FEW} at once`, a), cpu(`${MANY} at once`, b)],
      },
    ];
  },
};

/** Starts a product with one endpoint. `measure` fills the endpoint's backlog and tells how it drains. */
const startSide = async (
  bench: Bench,
  sink: WebhookSink,
  atOnce: number,
): Promise<{ measure(): Promise<Drained>; end(): Promise<void> }> => {
  const product = await startDelivering(
    bench,
    sink,
    { WEBHOOK_STARTS_PER_SECOND: '100000', WEBHOOK_CONCURRENCY: String(atOnce) },
    1,
  );
  const tracker = await createTracker(product);
  const webhook = await createEndpoint(product, product.keys[0] ?? '', sink.urls[0] ?? '', tracker);
  return { measure: () => fillAndDrain(bench, sink, product, { tracker, webhook }), end: product.end };
};

const fillAndDrain = (
  bench: Bench,
  sink: WebhookSink,
  product: Product,
  { tracker, webhook }: { readonly tracker: string; readonly webhook: string },
): Promise<Drained> =>
  product.beside(async (runtime) => {
    const { pool } = runtime;
    const { rows } = await pool.query('select partner_id from read.tracker where tracker_id = $1', [tracker]);
    // Past the command: a paused endpoint would get no new deliveries.
    const hold = (since: string) =>
      pool.query(`update read.webhook_health set paused_at = ${since} where webhook_id = $1`, [webhook]);
    await hold('now()');
    const site = { tracker, partner: rows[0].partner_id };
    await writeSessions(runtime, bench.freshAddresses(SESSIONS), SESSIONS, () => site);
    await product.followed();
    const before = await sink.received();
    const meters = () => [product.meters.server?.() ?? 0, product.meters.PostgreSQL?.() ?? 0] as const;
    await hold('null');
    const from = await sink.reached(before + SESSIONS * FROM);
    const began = meters();
    const to = await sink.reached(before + SESSIONS * TO);
    const ended = meters();
    await sink.reached(before + SESSIONS);
    await product.followed();
    const deliveries = to.received - from.received;
    return {
      perSecond: (deliveries * 1_000) / (to.at - from.at),
      cpuMicros: ((ended[0] - began[0]) * 1e6) / deliveries,
      postgresMicros: ((ended[1] - began[1]) * 1e6) / deliveries,
    };
  });
