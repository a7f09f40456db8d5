/** A partner with the packed client, and its own instance of the product. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Tracker } from '../../clients/typescript/src/generated.ts';
import type { Client, ClientOptions, Time } from '../../clients/typescript/src/index.ts';
import type { Environment } from '../support/doorplate.ts';
import { installPackedClient, type PartnerProject, type ProgramRun } from '../support/packed-client.ts';
import type { Service } from '../support/service.ts';
import { startServiceOnDatabase } from '../support/service-on-database.ts';

export const [GOOGLE, CLOUDFLARE, QUAD9] = ['8.8.8.8', '1.1.1.1', '9.9.9.9'] as const;
const PAGE = 'https://www.example.com';

/** The factor by which the client shortens its waits; its time limits are longer by the same factor. */
export const SPEED_FACTOR = 50;
const TIMEOUT_MS = 15_000 * SPEED_FACTOR;

export interface Partner {
  readonly project: PartnerProject;
  readonly service: Service;
  readonly waits: number[];
  /** With the partner's key and short waits, unless given. */
  client(options?: Partial<ClientOptions>): Client;
  makeTracker(): Promise<Tracker>;
  visit(trackerId: string, ip: string): Promise<void>;
  /** The units that the partner owes by the ledger. */
  units(): Promise<number>;
  run(example: string, args?: readonly string[], env?: Environment): ProgramRun;
  remove(): Promise<void>;
}

export const startPartner = async (env: Environment = {}): Promise<Partner> => {
  const [project, service] = await Promise.all([installPackedClient(), startServiceOnDatabase({ env })]);
  const { api_key: apiKey, partner_id } = await service.newKey({ requests_per_second: 1_000 });
  const waits: number[] = [];
  const time: Time = {
    now: () => performance.now() * SPEED_FACTOR,
    sleep: async (ms, signal) => {
      if (ms < TIMEOUT_MS) waits.push(ms);
      await sleep(ms / SPEED_FACTOR, undefined, signal && { signal });
    },
  };
  const client = (options: Partial<ClientOptions> = {}): Client =>
    project.client.createClient({
      baseUrl: service.url,
      apiKey,
      time,
      timeoutMs: TIMEOUT_MS,
      deadlineMs: 10 * TIMEOUT_MS,
      ...options,
    });
  return {
    project,
    service,
    waits,
    client,
    makeTracker: () => client().trackers.create({ name: 'a site', origins: [PAGE] }),
    visit: async (tracker_id, ip) => {
      const { status } = await service.call('POST', '/tracking/collect', {
        headers: { 'content-type': 'text/plain', origin: PAGE, 'x-forwarded-for': ip },
        body: { tracker_id, token: randomUUID(), visit_id: randomUUID(), custom: { plan: 'pro' } },
      });
      if (status !== 204) throw new Error(`the visit is answered with ${status}`);
    },
    units: async () => {
      const { code, stdout, stderr } = await service.cli(
        'audit',
        'billing',
        '--partner',
        partner_id,
        '--json',
      );
      if (code !== 0) throw new Error(`the audit ended with ${code}: ${stdout}${stderr}`);
      return JSON.parse(stdout).units;
    },
    run: (example, args = [], more = {}) =>
      project.start(example, args, { DOORPLATE_URL: service.url, DOORPLATE_API_KEY: apiKey, ...more }),
    remove: async () => {
      await service.remove();
      project.remove();
    },
  };
};

export const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error,
  );
