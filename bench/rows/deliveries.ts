import { randomUUID } from 'node:crypto';
import type { Runtime } from '../../bin/runtime.ts';
import { createCaptureVisit } from '../../commands/sessions/capture-visit.ts';
import { addressOf } from '../support/addresses.ts';
import {
  bareDeliveries,
  type Delivered,
  startWebhookSink,
  type WebhookSink,
} from '../support/bare-deliveries.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import type { Product } from '../support/product.ts';
import { alternate, median, medianRatio, percentile } from '../support/statistics.ts';
import { createTracker } from '../support/tracking.ts';
import { captureToReceiver, createEndpoint, startDelivering } from '../support/webhooks.ts';

const PARTNERS = 4;
const NO_LIMITS = { WEBHOOK_STARTS_PER_SECOND: '100000' };
export const OF_A_PARTNER = 5;
/** Captured sessions per second of a round. */
export const SESSIONS_A_SECOND = 300;
const AT_ONCE = 64;
/** With the rest of the body about a kilobyte. */
const LABEL = 'x'.repeat(480);
const RATE = 200;
const LIMIT_MS = 60;

/** A partner's tracker whose sessions five endpoints subscribe to. */
interface Site {
  readonly tracker: string;
  readonly partner: string;
}

/**
 * Events to acknowledged deliveries: sessions are written to the store, each notifies five of twenty HTTPS endpoints
 * in another process, signed, at an unlimited start rate; against a loop that vets, signs and sends bodies of the
 * same size to the same endpoints and records nothing. Then, at 200 captures a second over HTTP, the time from a
 * capture's response until an endpoint has the event.
 */
export const deliveries: Row = {
  name: 'deliveries',
  run: async (bench) => {
    const lines = await measure(bench, {}, 'webhook deliveries');
    if (bench.eventStoreUrl === undefined) return lines;
    const store = { EVENTSTORE_URL: bench.eventStoreUrl };
    return [...lines, ...(await measure(bench, store, 'webhook deliveries, on EventStoreDB'))];
  },
};

const measure = async (
  bench: Bench,
  store: Readonly<Record<string, string>>,
  row: string,
): Promise<readonly Line[]> => {
  const sink = await startWebhookSink();
  bench.defer(sink.end);
  const product = await startDelivering(bench, sink, { ...NO_LIMITS, ...store }, PARTNERS);
  const bare = await bareDeliveries(sink);
  try {
    const sites = await subscribe(product, sink);
    const measure = () =>
      product.beside((runtime) => measureDeliveries(bench, runtime, product, sites, sink));
    // The connections are open.
    await measure();
    const { a, b } = await alternate(bench.effort.rounds, measure, () => bare.measure(bench.effort.seconds));
    const waits = await measureLatency(bench, product, sink);
    return [throughput(row, a, b), latency(row, waits)];
  } finally {
    await bare.end();
    await product.end();
    await sink.end();
  }
};

/** Gives each partner a tracker whose sessions five endpoints subscribe to. */
export const subscribe = async (product: Product, { urls }: WebhookSink): Promise<Site[]> => {
  const sites: Site[] = [];
  for (const [nth, key] of product.keys.entries()) {
    const tracker = await createTracker({ ...product, keys: [key] });
    for (const url of urls.slice(nth * OF_A_PARTNER, (nth + 1) * OF_A_PARTNER)) {
      await createEndpoint(product, key, url, tracker);
    }
    const partner = await product.beside(async ({ pool }) => {
      const { rows } = await pool.query('select partner_id from read.tracker where tracker_id = $1', [
        tracker,
      ]);
      return rows[0].partner_id as string;
    });
    sites.push({ tracker, partner });
  }
  return sites;
};

/** Writes this number of sessions to the store, 64 at once, with addresses from `first` on. */
export const writeSessions = async (
  { store, dayKeys, clock }: Runtime,
  first: number,
  sessions: number,
  siteOf: (n: number) => Site,
): Promise<void> => {
  const write = createCaptureVisit(store, dayKeys, async () => ({
    release: () => undefined,
    confirm: () => undefined,
  }));
  let next = 0;
  const writer = async (): Promise<void> => {
    for (let n = next++; n < sessions; n = next++) {
      const { tracker, partner } = siteOf(n);
      const id = randomUUID();
      await write(
        {
          tracker_id: tracker,
          partner_id: partner,
          token: randomUUID(),
          visit_id: randomUUID(),
          ip: addressOf(first + n),
          visitor_country: null,
          custom: { n, label: LABEL },
        },
        { correlationId: id, causationId: id, at: clock.now(), partnerId: partner },
      );
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, writer));
};

/** Appends sessions and waits until every endpoint has acknowledged its own. */
export const measureDeliveries = async (
  bench: Pick<Bench, 'effort' | 'freshAddresses'>,
  runtime: Runtime,
  product: Product,
  sites: readonly Site[],
  sink: WebhookSink,
): Promise<Delivered & { readonly postgresMicros: number }> => {
  const sessions = Math.round(SESSIONS_A_SECOND * bench.effort.seconds);
  const first = bench.freshAddresses(sessions);
  const meters = () => [product.meters.server?.() ?? 0, product.meters.PostgreSQL?.() ?? 0] as const;
  const expected = (await sink.received()) + sessions * OF_A_PARTNER;
  const before = meters();
  const startedAt = performance.now();
  await writeSessions(runtime, first, sessions, (n) => sites[n % sites.length] as Site);
  const { at } = await sink.reached(expected);
  const seconds = (at - startedAt) / 1_000;
  const after = meters();
  await product.followed();
  const total = sessions * OF_A_PARTNER;
  return {
    perSecond: total / seconds,
    cpuMicros: ((after[0] - before[0]) * 1e6) / total,
    postgresMicros: ((after[1] - before[1]) * 1e6) / total,
  };
};

const throughput = (
  row: string,
  a: readonly (Delivered & { readonly postgresMicros: number })[],
  b: readonly Delivered[],
): Line => {
  const rates = (some: readonly Delivered[]) => some.map((one) => one.perSecond);
  const micros = (values: readonly number[]) => median(values).toFixed(0);
  return {
    row,
    ratio: medianRatio(rates(a), rates(b)),
    target: { atLeast: 0.5 },
    a: { of: 'sessions to acknowledged deliveries, 20 HTTPS endpoints', value: median(rates(a)), unit: '/s' },
    b: { of: 'vet, sign and send, nothing else', value: median(rates(b)), unit: '/s' },
    notes: [
      `CPU a delivery, with a fifth of its session: server ${micros(a.map((one) => one.cpuMicros))} µs and PostgreSQL ${micros(a.map((one) => one.postgresMicros))} µs`,
      `CPU a bare delivery: ${micros(b.map((one) => one.cpuMicros))} µs`,
    ],
  };
};

/** Milliseconds from the response of each capture until the one endpoint has its event. */
const measureLatency = async (bench: Bench, product: Product, sink: WebhookSink): Promise<Float64Array> => {
  const { rounds, seconds } = bench.effort;
  const [key = ''] = product.keys;
  const { webhooks } = (await product.service.call('GET', '/v1/webhooks', { key })).body;
  // A partner may have five endpoints: one is removed to make room.
  await product.service.call('DELETE', `/v1/webhooks/${webhooks[0].id}`, { key });
  const tracker = await createTracker(product);
  await createEndpoint(product, key, sink.urls[0] ?? '', tracker);
  return captureToReceiver(bench, { product, sink, tracker, rate: RATE, seconds: (rounds * seconds) / 2 });
};

const latency = (row: string, waits: Float64Array): Line => {
  const [p50, p95] = [percentile(waits, 0.5), percentile(waits, 0.95)];
  return {
    row: `${row}: capture to receiver at ${RATE}/s`,
    ratio: p95 / LIMIT_MS,
    target: { atMost: 1 },
    a: { of: 'p95', value: p95, unit: ' ms' },
    b: { of: 'limit', value: LIMIT_MS, unit: ' ms' },
    notes: [
      `p50 ${p50.toFixed(1)} ms; from the 204 until the endpoint has the event; ${waits.length} captures`,
    ],
  };
};
