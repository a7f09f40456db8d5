import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import { addressOf } from './addresses.ts';
import type { WebhookSink } from './bare-deliveries.ts';
import type { Bench } from './bench.ts';
import { type Product, startProduct } from './product.ts';
import { capture } from './tracking.ts';

const CAME_MS = 120_000;
const POLL_MS = 20;

/** The configuration that allows deliveries to the sink. */
export const deliveringEnv = async (
  bench: Pick<Bench, 'defer'>,
  { port, authority }: WebhookSink,
): Promise<Readonly<Record<string, string>>> => {
  const folder = makeTestFolder();
  bench.defer(() => removeDataFolder(folder));
  const ca = join(folder, 'authority.pem');
  await writeFile(ca, authority);
  return {
    WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8',
    WEBHOOK_ALLOW_PORTS: String(port),
    WEBHOOK_EXTRA_CA_FILE: ca,
    WEBHOOK_MANAGEMENT_PER_MINUTE: '1000000',
  };
};

/** The product, allowed to deliver to the sink. */
export const startDelivering = async (
  bench: Bench,
  sink: WebhookSink,
  more: Readonly<Record<string, string>>,
  partners: number,
): Promise<Product> => {
  const product = await startProduct(partners, { ...(await deliveringEnv(bench, sink)), ...more });
  bench.defer(product.end);
  return product;
};

/** An endpoint that subscribes to the tracker's sessions. @returns its id */
export const createEndpoint = async (
  { service }: Product,
  key: string,
  url: string,
  tracker_id: string,
): Promise<string> => {
  const body = { name: 'bench', url, events: ['session.created'], tracker_id };
  const made = await service.call('POST', '/v1/webhooks', { key, body });
  if (made.status !== 201) throw new Error(`POST /v1/webhooks: ${made.status} ${JSON.stringify(made.body)}`);
  return made.body.id;
};

/** Captures of a tracker with one subscribed endpoint, at a rate per second for a time after the warm-up. */
interface Notified {
  readonly product: Product;
  readonly sink: WebhookSink;
  readonly tracker: string;
  readonly rate: number;
  readonly seconds: number;
}

/** Milliseconds from the response of each capture, over HTTP, until the endpoint has its event. */
export const captureToReceiver = async (
  { effort, freshAddresses }: Bench,
  { product, sink, tracker, rate, seconds }: Notified,
): Promise<Float64Array> => {
  const total = Math.round(rate * (effort.warmUpSeconds + seconds));
  const first = freshAddresses(total);
  await sink.note();
  const acknowledged = await pace(rate, total, (n) => capture(product, tracker, addressOf(first + n), { n }));
  return waitsOf(sink, acknowledged, rate * effort.warmUpSeconds);
};

/**
 * Sends the numbers below `total` at this rate a second, whether or not the ones before are done.
 * @returns when each was done, milliseconds since the epoch
 */
export const pace = async (
  rate: number,
  total: number,
  send: (n: number) => Promise<unknown>,
): Promise<Map<number, number>> => {
  const done = new Map<number, number>();
  const startedAt = performance.now();
  const working: Promise<void>[] = [];
  const one = async (n: number): Promise<void> => {
    await send(n);
    done.set(n, performance.timeOrigin + performance.now());
  };
  while (working.length < total) {
    const due = Math.min(total, ((performance.now() - startedAt) * rate) / 1_000);
    while (working.length < due) working.push(one(working.length));
    await pause(1);
  }
  await Promise.all(working);
  return done;
};

/** Milliseconds from each acknowledgement, from the one of `warm` on, until the endpoint has the event. */
export const waitsOf = async (
  sink: WebhookSink,
  acknowledged: ReadonlyMap<number, number>,
  warm: number,
): Promise<Float64Array> => {
  const came = await allOf(sink, acknowledged.size);
  // An event may come before the response of its capture.
  return Float64Array.from(
    [...acknowledged]
      .filter(([n]) => n >= warm)
      .map(([n, at]) => Math.max(0, (came.get(n) ?? Number.NaN) - at)),
  );
};

const allOf = async (sink: WebhookSink, total: number): Promise<Map<number, number>> => {
  const deadline = performance.now() + CAME_MS;
  for (;;) {
    const came = await sink.noted();
    if (came.size >= total) return came;
    if (performance.now() > deadline) throw new Error(`${came.size} of ${total} events came`);
    await pause(POLL_MS);
  }
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
