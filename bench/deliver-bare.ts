/**
 * Vets, signs and sends webhooks as fast as it can without recording anything: the cost of deliveries alone.
 * Argument: `BareDeliverer`. Prints `{}` when it is ready, then takes lines `{seconds}` and answers each with
 * `{deliveries, failures, seconds}`; ends when its input ends.
 */
import { randomBytes } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { createInterface } from 'node:readline';
import { systemClock } from '../platform/clock/clock.ts';
import { createSender, signatureHeaders } from '../processors/webhooks/delivery/sender.ts';

export interface BareDeliverer {
  readonly urls: readonly string[];
  readonly ports: readonly number[];
  readonly authority: string;
  readonly bodyBytes: number;
  /** Concurrent deliveries per endpoint. */
  readonly atOnce: number;
}

const { urls, ports, authority, bodyBytes, atOnce } = JSON.parse(process.argv[2] ?? '') as BareDeliverer;
const sender = createSender({
  resolver: new Resolver(),
  policy: { allowHttp: false, allowPorts: ports, allowNetworks: ['127.0.0.0/8'], ownOrigins: [] },
  clock: systemClock,
  extraCa: authority,
  isOwnDomain: async () => false,
});
const PARTNER = '0198c0de-0000-7000-8000-000000000002';
const secrets = [randomBytes(32)];
const body = Buffer.from(JSON.stringify({ data: 'x'.repeat(bodyBytes - '{"data":""}'.length) }));

const deliverTo = async (url: string, until: number): Promise<{ deliveries: number; failures: number }> => {
  let deliveries = 0;
  let failures = 0;
  // The id is made outside the measurement, as in the product.
  const eventId = 'evt_session_0198c0de-0000-7000-8000-000000000001';
  while (performance.now() < until) {
    const headers = signatureHeaders(secrets, eventId, systemClock.now(), body);
    const { error } = await sender.send({ url, headers, body, partner_id: PARTNER });
    if (error === null) deliveries += 1;
    else failures += 1;
  }
  return { deliveries, failures };
};

process.stdout.write('{}\n');
for await (const line of createInterface({ input: process.stdin })) {
  const { seconds } = JSON.parse(line) as { seconds: number };
  const begin = performance.now();
  const lanes = urls.flatMap((url) => Array.from({ length: atOnce }, () => url));
  const each = await Promise.all(lanes.map((url) => deliverTo(url, begin + seconds * 1_000)));
  const sum = (key: 'deliveries' | 'failures') => each.reduce((total, one) => total + one[key], 0);
  const took = (performance.now() - begin) / 1_000;
  process.stdout.write(
    `${JSON.stringify({ deliveries: sum('deliveries'), failures: sum('failures'), seconds: took })}\n`,
  );
}
process.exit(0);
