/** Many concurrent clients that repeat a submission until it is acknowledged. */
import { setTimeout as pause } from 'node:timers/promises';
import { noteCounting } from '../partners.ts';
import type { Load } from './load.ts';

export interface Crowd {
  /** Starts them, also while the service does not answer. */
  start(): void;
  /** Resolves when each has its acknowledgement. */
  served(): Promise<void>;
}

export const CROWD_CLIENTS = 600;
const RETRY_MS = 1_000;
const LIMIT_MS = 180_000;

export const createCrowd = (load: Load): Crowd => {
  let waiting: Promise<unknown> = Promise.resolve();
  return {
    start: () => {
      const end = performance.now() + LIMIT_MS;
      waiting = Promise.all(Array.from({ length: CROWD_CLIENTS }, () => submitUntilServed(load, end)));
    },
    served: async () => void (await waiting),
  };
};

const submitUntilServed = async (load: Load, end: number): Promise<void> => {
  const { client, random, partners, violations } = load;
  const partner = random.pick(partners);
  const ip = load.nextIp();
  while (performance.now() < end) {
    const { key } = partner;
    const answer = await client.ask('submission', [200, 202], 'POST', '/v1/lookup', { key, body: { ip } });
    noteCounting(partner.lookups, answer);
    if (answer?.status === 200 || answer?.status === 202) return void partner.submitted.add(ip);
    await pause(RETRY_MS);
  }
  violations.add(`each of ${CROWD_CLIENTS} clients is served after an outage`, `${partner.partnerId}, ${ip}`);
};
