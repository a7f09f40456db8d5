import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { COMPANY, respond, startProvider, type TestProvider } from '../support/http-provider.ts';
import { type Service, startService } from '../support/service.ts';

/** Of `RETRY_BASE_SECONDS`; a period of a provider's circuit breaker is two of them. */
const BASE_SECONDS = 1;
const PERIOD_MS = 2_000;
const CALLS_IN_PERIOD = 5;
/** In which a new address completes beside others that fail for ever. */
const COMPLETE_MS = 4_000;
/** For timers of a busy machine. */
const JITTER_MS = 50;

let database: TestDatabase;
let provider: TestProvider;
let service: Service;
let key: string;
/** Times of the calls, milliseconds. */
let calls: number[];
const failing = new Set<string>();
let isDown = false;

beforeAll(async () => {
  calls = [];
  database = await testDatabase();
  provider = await startProvider((ip, response) => {
    calls.push(performance.now());
    if (isDown || failing.has(ip)) respond(response, 503);
    else respond(response, 200, COMPANY);
  });
  service = await startService({
    databaseUrl: database.url,
    env: { ...provider.env, RETRY_BASE_SECONDS: String(BASE_SECONDS) },
  });
  key = service.demoKey();
});
afterAll(async () => {
  await service?.remove();
  provider?.close();
  await database?.drop();
});

const post = async (ip: string) =>
  expect((await service.call('POST', '/v1/lookup', { key, body: { ip } })).status).toBe(202);
/** Asks for a new address and waits for its result. @returns how long that took, milliseconds */
const timeOf = async (ip: string): Promise<number> => {
  const began = performance.now();
  await post(ip);
  await eventually(
    `${ip} is complete`,
    () => service.call('GET', `/v1/lookup?ip=${ip}`, { key }),
    ({ status }) => status === 200,
  );
  return performance.now() - began;
};
let network = 0;
const addresses = (count: number): string[] => {
  network += 1;
  return Array.from({ length: count }, (_, n) => `81.2.${network}.${n + 1}`);
};
const one = (): string => addresses(1)[0] ?? '';
/** The most calls in any period from a time on, up to the last call. */
const mostInPeriod = (from: number): number => {
  const since = calls.filter((at) => at > from);
  return Math.max(
    ...since.map((begin) => since.filter((at) => at >= begin && at < begin + PERIOD_MS - JITTER_MS).length),
  );
};
const isOpen = async (): Promise<boolean> => {
  const metrics = await fetch(`http://127.0.0.1:${service.env.OPS_PORT}/metrics`);
  return /^doorplate_provider_breaker_open\{provider="http"\} 1$/m.test(await metrics.text());
};

describe('beside forty addresses for which the vendor always fails', () => {
  it('a new address completes within seconds, though the forty came first', async () => {
    for (const ip of addresses(40)) {
      failing.add(ip);
      await post(ip);
    }
    expect(await timeOf(one())).toBeLessThan(COMPLETE_MS);
    expect(service.stderr()).toContain('its circuit breaker opens');
  });

  it('so does one after another', async () => {
    for (let n = 0; n < 5; n += 1) expect(await timeOf(one())).toBeLessThan(COMPLETE_MS);
  });

  it('so does one after a restart', async () => {
    await service.terminate();
    await service.restart();
    expect(await timeOf(one())).toBeLessThan(COMPLETE_MS);
  });

  it('so does one beside a second process', async () => {
    const { env } = service;
    const second = await startService({ role: 'workers', databaseUrl: database.url, env: withoutPorts(env) });
    try {
      for (let n = 0; n < 3; n += 1) expect(await timeOf(one())).toBeLessThan(COMPLETE_MS);
    } finally {
      await second.remove();
    }
  });
});

it('calls a vendor that is wholly down five times in a period at most, and asks it again once it is up', async () => {
  isDown = true;
  const waiting = addresses(40);
  for (const ip of waiting) await post(ip);
  await eventually('the breaker is open', isOpen, Boolean);
  const from = performance.now();
  const known = calls.length;
  await eventually('it is probed', async () => calls.length >= known + 3 * CALLS_IN_PERIOD, Boolean, 20_000);
  expect(mostInPeriod(from)).toBeLessThanOrEqual(CALLS_IN_PERIOD);
  isDown = false;
  for (const ip of waiting.slice(-3)) {
    await eventually(
      `${ip} is complete`,
      () => service.call('GET', `/v1/lookup?ip=${ip}`, { key }),
      ({ status }) => status === 200,
    );
  }
});

const withoutPorts = ({ DATA_DIR: _, PORT: __, OPS_PORT: ___, ...env }: Service['env']): Service['env'] =>
  env;
