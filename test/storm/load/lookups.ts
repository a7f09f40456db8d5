/** Partners that submit addresses and poll those that were acknowledged. */
import { setTimeout as pause } from 'node:timers/promises';
import { noteCounting, type Partner } from '../partners.ts';
import type { Load } from './load.ts';

const RETRIES = 2;
const RETRY_MS = 500;

/** POSTs one address, again after an unknown outcome. */
export const submitAddress = async ({ client, random, partners, nextIp }: Load): Promise<void> => {
  const partner = random.pick(partners);
  const ip = nextIp();
  for (let retries = RETRIES; retries >= 0; retries -= 1) {
    const { key } = partner;
    const answer = await client.ask('submission', [200, 202], 'POST', '/v1/lookup', { key, body: { ip } });
    noteCounting(partner.lookups, answer);
    if (answer?.status === 200 || answer?.status === 202) return void partner.submitted.add(ip);
    if (retries > 0) await pause(RETRY_MS);
  }
};

/** GETs an address whose submission was acknowledged. */
export const pollAddress = async (load: Load): Promise<void> => {
  const partner = load.random.pick(load.partners);
  if (partner.submitted.size === 0) return;
  const ip = load.random.pick([...partner.submitted].slice(-200));
  await lookUp(load, partner, ip);
};

/** GETs the lookup of an address whose submission was acknowledged. @returns its status; null: there was no answer */
export const lookUp = async (
  { client, violations }: Pick<Load, 'client' | 'violations'>,
  partner: Partner,
  ip: string,
): Promise<number | null> => {
  const { key, partnerId } = partner;
  const answer = await client.ask('lookup', [200, 202, 404], 'GET', `/v1/lookup?ip=${ip}`, { key });
  noteCounting(partner.lookups, answer);
  if (answer?.status === 404) {
    violations.add(
      'an acknowledged submission is known',
      `partner ${partnerId}, ${ip}: ${JSON.stringify(answer.body)}`,
    );
  }
  return answer?.status ?? null;
};
