/** One measurement in one file: how the endpoint is filled, what is measured, and the lines of the report. */
import type pg from 'pg';
import type { Runtime } from '../../bin/runtime.ts';
import { residentMemory } from '../../cli/installation/process-stats.ts';
import { allProjections } from '../../projections/all.ts';
import { addressOf } from '../support/addresses.ts';
import { startWebhookSink, type WebhookSink } from '../support/bare-deliveries.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import { load } from '../support/load.ts';
import type { Product } from '../support/product.ts';
import { alternate, median, medianRatio, percentile } from '../support/statistics.ts';
import { capture, createTracker } from '../support/tracking.ts';
import { captureToReceiver, createEndpoint, startDelivering } from '../support/webhooks.ts';

const SMALL_SIZE = 10_000;
const PAGES_A_SECOND = 40;
const CONNECTIONS = 4;
const PAGES = 600;
const MOST_SECONDS = 5;
const CLAIMS = 40;
const CAPTURES_A_SECOND = 50;
const LIMIT_MB = 300;
/** Log positions beyond all others. */
const FIRST = 1_000_000;
const DELIVERED_MS = 20_000;
const POLL_MS = 50;

/** A service with a paused endpoint with this number of pending deliveries, and another endpoint. */
interface Filled {
  readonly product: Product;
  readonly webhook: string;
  /** The tracker whose sessions the other endpoint subscribes to. */
  readonly tracker: string;
  readonly paths: readonly string[];
}

/**
 * A paused endpoint with few and with many pending deliveries: pages from its whole history, claims of its due
 * deliveries, the server's memory; and the delay of another endpoint's events while the one with many is paused, and
 * while it is enabled and sends at its limit. Two services stand side by side, each with its own data. The deliveries
 * are written to the read model's tables directly.
 */
export const deliveriesMillionRow: Row = {
  name: 'deliveries-million',
  run: async (bench) => {
    const sink = await startWebhookSink();
    bench.defer(sink.end);
    const few = await filled(bench, sink, SMALL_SIZE);
    const many = await filled(bench, sink, bench.effort.saved);
    try {
      return [
        await pages(bench, few, many),
        await claims(bench, few, many),
        memory(bench, many),
        await enabling(bench, sink, many),
      ];
    } finally {
      await few.product.end();
      await many.product.end();
      await sink.end();
    }
  },
};

const filled = async (bench: Bench, sink: WebhookSink, count: number): Promise<Filled> => {
  bench.say(`making ${count} deliveries`);
  const product = await startDelivering(bench, sink, {}, 1);
  const { service } = product;
  const [key = ''] = product.keys;
  const [url = '', otherUrl = ''] = sink.urls;
  const webhook = await createEndpoint(product, key, url, await createTracker(product));
  const tracker = await createTracker(product);
  await createEndpoint(product, key, otherUrl, tracker);
  const sent = await service.call('POST', `/v1/webhooks/${webhook}/test`, { key });
  await delivered(product, webhook);
  await service.call('PATCH', `/v1/webhooks/${webhook}`, { key, body: { enabled: false } });
  await product.followed();
  const paths = await product.beside(async (runtime) => {
    const partner = await fill(runtime, webhook, sent.body.delivery_id, count);
    const { cursors } = runtime;
    const pathOf = async (_: unknown, n: number) => {
      // Far enough from the end that the page is full.
      const position = BigInt(FIRST + 100 + Math.floor((n / PAGES) * (count - 100)));
      const cursor = await cursors.seal(position, `deliveries ${partner} ${webhook} *`);
      return `/v1/webhooks/${webhook}/deliveries?cursor=${cursor}`;
    };
    return Promise.all(Array.from({ length: PAGES }, pathOf));
  });
  // All read models are past them.
  await capture(product, tracker, addressOf(bench.freshAddresses(1)));
  await product.followed();
  const page = await service.call('GET', paths.at(-1) ?? '', { key });
  if (page.body.deliveries?.length !== 50) throw new Error(`no full page: ${JSON.stringify(page.body)}`);
  // Neighbouring numbers give distant pages, so that no page is cached because of the one before.
  return { product, webhook, tracker, paths: paths.map((_, n) => paths[(n * 7_919) % PAGES] as string) };
};

const delivered = async ({ service, keys: [key = ''] }: Product, webhook: string): Promise<void> => {
  for (
    const deadline = performance.now() + DELIVERED_MS;
    performance.now() < deadline;
    await pause(POLL_MS)
  ) {
    const { body } = await service.call('GET', `/v1/webhooks/${webhook}`, { key });
    if (body.deliveries.delivered === 1) return;
  }
  throw new Error('the test was not delivered');
};

/** Copies the one delivery this many times, for the same event. @returns the partner */
const fill = async (
  { pool, clock }: Runtime,
  webhook: string,
  delivery: string,
  count: number,
): Promise<string> => {
  const now = new Date(clock.now());
  const client = await pool.connect();
  try {
    await client.query('set statement_timeout = 0');
    for (let done = 0; done < count; done += SMALL_SIZE) await insert(client, delivery, now, done);
    await client.query(
      `insert into read.webhook_total (webhook_id, partner_id, day, state, deliveries)
       select webhook_id, partner_id, (created_at at time zone 'UTC')::date, 'pending', $2
       from read.webhook_delivery where delivery_id = $1
       on conflict (webhook_id, day, state) do update set deliveries = excluded.deliveries`,
      [delivery, count],
    );
    await client.query('update read.webhook_health set pending = pending + $2 where webhook_id = $1', [
      webhook,
      count,
    ]);
    // Later events come after them in the log.
    await client.query(`alter table eventlog.event alter column position restart with ${FIRST + 10 * count}`);
    await client.query('analyze read.webhook_delivery');
    const { rows } = await client.query(
      'select partner_id from read.webhook_endpoint where webhook_id = $1',
      [webhook],
    );
    return rows[0].partner_id;
  } finally {
    client.release();
  }
};

const insert = (client: pg.PoolClient, delivery: string, now: Date, done: number): Promise<unknown> =>
  client.query(
    `insert into read.webhook_delivery
       (delivery_id, webhook_id, partner_id, event_id, type, state, cycle, attempts, cycle_attempts,
        cycle_started_at, stood_still_ms, created_at, position, payload_expires_at, next_attempt_at)
     select gen_random_uuid(), webhook_id, partner_id, event_id, type, 'pending', 1, 0, 0,
            $2, 0, created_at, n, payload_expires_at, $2
     from read.webhook_delivery, generate_series($3::bigint, $4::bigint) n where delivery_id = $1`,
    [delivery, now, FIRST + done, FIRST + done + SMALL_SIZE - 1],
  );

const pages = async ({ effort }: Bench, few: Filled, many: Filled): Promise<Line> => {
  const p50 = async ({ product: { port, keys }, paths }: Filled): Promise<number> => {
    const result = await load({
      port,
      requests: { of: 'pages', key: keys[0] ?? '', paths },
      connections: CONNECTIONS,
      rate: PAGES_A_SECOND,
      warmUpSeconds: effort.warmUpSeconds,
      seconds: Math.min(effort.seconds, MOST_SECONDS),
      expect: 200,
    });
    return result.p50;
  };
  const { a, b } = await alternate(
    effort.rounds,
    () => p50(many),
    () => p50(few),
  );
  return compared(effort.saved, 'history page', a, b, [
    `${PAGES_A_SECOND} pages a second, each from one of ${PAGES.toLocaleString('en')} cursors`,
  ]);
};

const claims = async ({ effort }: Bench, few: Filled, many: Filled): Promise<Line> => {
  const time = ({ product, webhook }: Filled): Promise<number> =>
    product.beside((runtime) => claimTime(runtime, webhook));
  const { a, b } = await alternate(
    effort.rounds,
    () => time(many),
    () => time(few),
  );
  return compared(effort.saved, 'claim of 32 deliveries', a, b, ['taken back each time']);
};

/** The median over several claims of what would be due if the endpoint were enabled. */
const claimTime = async ({ pool, clock }: Runtime, webhook: string): Promise<number> => {
  const client = await pool.connect();
  const now = clock.now();
  const names = allProjections.map(({ name }) => name);
  const times: number[] = [];
  try {
    await client.query('begin');
    await client.query(
      'update read.webhook_health set paused_at = null, still_since = null where webhook_id = $1',
      [webhook],
    );
    for (let n = 0; n < CLAIMS; n += 1) {
      await client.query('savepoint before');
      const startedAt = performance.now();
      const { rows } = await client.query({
        name: 'bench_claim',
        text: `select json_array_length(claims) as claimed from work.claim_attempts(
                 gen_random_uuid(), $1, '{32}', $2, $3, $4, '{}', 32, 100000, 10, 60000)`,
        values: [[webhook], new Date(now), new Date(now + 30_000), names],
      });
      times.push(performance.now() - startedAt);
      if (rows[0].claimed !== 32) throw new Error(`${rows[0].claimed} claimed`);
      await client.query('rollback to savepoint before');
    }
  } finally {
    await client.query('rollback');
    client.release();
  }
  return median(times);
};

const compared = (
  count: number,
  what: string,
  a: readonly number[],
  b: readonly number[],
  notes: readonly string[],
): Line => {
  const name = count.toLocaleString('en');
  return {
    row: `${what} with ${name} deliveries`,
    ratio: medianRatio(a, b),
    target: { atMost: 1.3 },
    a: { of: `p50 with ${name} pending`, value: median(a), unit: ' ms' },
    b: { of: `p50 with ${SMALL_SIZE.toLocaleString('en')} pending`, value: median(b), unit: ' ms' },
    notes,
  };
};

const memory = ({ effort }: Bench, { product }: Filled): Line => {
  const used = residentMemory(product.service.pid);
  return {
    row: `memory with ${effort.saved.toLocaleString('en')} deliveries`,
    ratio: used / LIMIT_MB,
    target: { atMost: 1 },
    a: { of: 'resident memory of the server', value: used, unit: ' MB' },
    b: { of: 'limit', value: LIMIT_MB, unit: ' MB' },
    notes: [],
  };
};

/** The events of the other endpoint, before and after the one with many is enabled. */
const enabling = async (
  bench: Bench,
  sink: WebhookSink,
  { product, webhook, tracker }: Filled,
): Promise<Line> => {
  const { rounds, seconds } = bench.effort;
  const options = { product, sink, tracker, rate: CAPTURES_A_SECOND, seconds: (rounds * seconds) / 2 };
  const before = await captureToReceiver(bench, options);
  const [key = ''] = product.keys;
  await product.service.call('PATCH', `/v1/webhooks/${webhook}`, { key, body: { enabled: true } });
  const after = await captureToReceiver(bench, options);
  const name = bench.effort.saved.toLocaleString('en');
  const [a, b] = [percentile(after, 0.95), percentile(before, 0.95)];
  return {
    row: `another endpoint beside ${name} deliveries`,
    ratio: a / b,
    target: { atMost: 1.5 },
    a: { of: 'p95 from capture to receiver while they are sent', value: a, unit: ' ms' },
    b: { of: 'p95 while they are paused', value: b, unit: ' ms' },
    notes: [`${CAPTURES_A_SECOND} captures a second; the endpoint with many starts 200 a second`],
  };
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
