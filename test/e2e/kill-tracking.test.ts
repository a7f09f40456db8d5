import { afterAll, beforeAll, describe, it } from 'vitest';
import { createEventStoreDb } from '../../event-store/eventstoredb/store.ts';
import type { EventStore } from '../../event-store/port.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { eventually } from '../support/eventually.ts';
import { COMPANY, respond, startProvider, type TestProvider } from '../support/http-provider.ts';
import { type Service, startService } from '../support/service.ts';
import { verifyCompleted, verifyTold } from './told-of-tracking.ts';
import { type Customer, PAGE, startVisitors, toldNothing } from './visitors.ts';

const { EVENTSTORE_URL } = process.env;
/** More by hand: a hundred take a while. */
const ROUNDS = Number(process.env.DOORPLATE_KILL_ROUNDS ?? 5);
const TEST_MS = 120_000 + ROUNDS * 30_000;
const RECOVERED_MS = 30_000;
const STORES = [
  { store: 'the embedded PostgreSQL', url: undefined, runs: true },
  {
    store: 'EventStoreDB, where EVENTSTORE_URL names one',
    url: EVENTSTORE_URL,
    runs: EVENTSTORE_URL !== undefined,
  },
];
const ROOMY = {
  RETRY_BASE_SECONDS: '0.2',
  ENRICHMENT_HTTP_TIMEOUT_MS: '1000',
  ENRICHMENT_INTAKE_PER_MINUTE: '999999',
  CAPTURES_PER_SECOND: '20000',
  CAPTURES_PER_SECOND_PER_TRACKER: '20000',
  CAPTURES_PER_SECOND_PER_VISITOR: '20000',
  REVEALS_PER_SECOND: '20000',
};

let serial = Math.floor(Math.random() * 2 ** 24);
const net = 20 + (Date.now() % 60);
/** Every third visitor comes from one of few addresses, of which something is saved before long. */
const nextIp = (): string => {
  serial = (serial + 1) % 2 ** 24;
  return serial % 3 === 0
    ? `${net}.0.0.${serial % 50}`
    : `${net}.${serial >> 16}.${(serial >> 8) & 255}.${serial & 255}`;
};
const soon = (): number => 200 + Math.floor(Math.random() * 600);

describe.each(STORES.filter(({ runs }) => !runs))('tracking, killed, on $store', () => {
  it.skip('was not run', () => {});
});

describe.each(STORES.filter(({ runs }) => runs))('tracking, killed under load, on $store', ({ url }) => {
  let service: Service;
  let provider: TestProvider;
  let customers: readonly Customer[];
  let store: EventStore;
  let postgres: EmbeddedPostgres | undefined;
  let stopVisitors = async (): Promise<void> => {};

  beforeAll(async () => {
    let asked = 0;
    provider = await startProvider((ip, response) => {
      asked += 1;
      // Of a quarter of the addresses nothing is known: their reveals are empty and have no unit.
      const status = asked % 7 === 0 ? 500 : Number(ip.split('.').at(-1)) % 4 === 0 ? 404 : 200;
      respond(response, status, COMPANY);
    });
    const env = { ...provider.env, ...ROOMY, ...(url === undefined ? {} : { EVENTSTORE_URL: url }) };
    service = await startService({ env });
    customers = [await newCustomer(), await newCustomer()];
    const quiet = { info: () => {}, warn: () => {}, error: () => {} };
    postgres = await startEmbeddedPostgres({ dataDir: service.dataDir, mode: 'join', log: quiet });
    store =
      url === undefined
        ? createPostgresEventStore({ url: postgres.url, now: Date.now })
        : createEventStoreDb({ url, now: Date.now });
  }, 90_000);
  afterAll(async () => {
    await stopVisitors();
    await store?.close();
    await service?.remove();
    await postgres?.stop();
    provider?.close();
  });

  const newCustomer = async (): Promise<Customer> => {
    const { api_key: key, partner_id } = await service.newKey(['--requests-per-second', '100000']);
    const made = await service.call('POST', '/v1/trackers', {
      key,
      body: { name: 'a site', origins: [PAGE] },
    });
    return { key, partner_id, tracker_id: made.body.id, told: toldNothing() };
  };

  const underLoad = async (kill: () => Promise<void>): Promise<void> => {
    const answers = (): number => customers.reduce((sum, { told }) => sum + told.answers, 0);
    const answersAfter = async (more: number): Promise<void> => {
      const enough = answers() + more;
      await eventually(`${more} answers`, () => answers() > enough, Boolean, RECOVERED_MS);
    };
    stopVisitors = startVisitors(service, customers, nextIp);
    await answersAfter(soon());
    await kill();
    await answersAfter(200);
    await stopVisitors();
    await Promise.all(customers.map((customer) => verifyTold(service, customer)));
  };

  const restart = async (): Promise<void> => {
    await service.kill();
    await service.restart();
  };
  /** In turn: the server, PostgreSQL under a living server, and both at once. */
  const KILLS = [
    restart,
    async () => service.killPostgres(),
    () => {
      service.killPostgres();
      return restart();
    },
  ];

  it(
    `keeps what customers were told when server, PostgreSQL or both are killed, ${ROUNDS} times`,
    async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        await underLoad(KILLS[round % KILLS.length] ?? restart);
      }
      await Promise.all(customers.map((customer) => verifyCompleted(service, store, customer)));
    },
    TEST_MS,
  );
});
