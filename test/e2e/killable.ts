/** The whole product, to be killed under load: server, PostgreSQL or both. */
import { createEventStoreDb } from '../../event-store/eventstoredb/store.ts';
import type { EventStore } from '../../event-store/port.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import type { Environment } from '../support/doorplate.ts';
import { COMPANY, respond, startProvider } from '../support/http-provider.ts';
import { type Service, startService } from '../support/service.ts';
import { type Customer, emptyRecord, PAGE } from './visitors.ts';

const ROOMY = {
  RETRY_BASE_SECONDS: '0.2',
  ENRICHMENT_HTTP_TIMEOUT_MS: '1000',
  ENRICHMENT_INTAKE_PER_MINUTE: '999999',
  CAPTURES_PER_SECOND: '20000',
  CAPTURES_PER_SECOND_PER_TRACKER: '20000',
  CAPTURES_PER_SECOND_PER_VISITOR: '20000',
  REVEALS_PER_SECOND: '20000',
};

export interface Killable {
  readonly service: Service;
  /** The service's own record, read by the test. */
  readonly store: EventStore;
  newCustomer(): Promise<Customer>;
  /** Each resolves when the service is ready again, except the kill of PostgreSQL alone. */
  readonly kill: Readonly<Record<'server' | 'postgres' | 'both', () => Promise<void>>>;
  close(): Promise<void>;
}

/** `url`: of an EventStoreDB. */
export const startKillable = async (url: string | undefined, more: Environment = {}): Promise<Killable> => {
  let asked = 0;
  const provider = await startProvider((ip, response) => {
    asked += 1;
    // A quarter of the addresses is unknown to the provider: their reveals are empty and have no unit.
    const status = asked % 7 === 0 ? 500 : Number(ip.split('.').at(-1)) % 4 === 0 ? 404 : 200;
    respond(response, status, COMPANY);
  });
  const env = { ...provider.env, ...ROOMY, ...more, ...(url === undefined ? {} : { EVENTSTORE_URL: url }) };
  const service = await startService({ env }).catch((error: unknown) => {
    provider.close();
    throw error;
  });
  const quiet = { info: () => {}, warn: () => {}, error: () => {} };
  const postgres = await startEmbeddedPostgres({ dataDir: service.dataDir, mode: 'join', log: quiet });
  const store =
    url === undefined
      ? createPostgresEventStore({ url: postgres.url, now: Date.now })
      : createEventStoreDb({ url, now: Date.now });

  const killServer = async (): Promise<void> => {
    await service.kill();
    await service.restart();
  };
  return {
    service,
    store,
    newCustomer: async () => {
      const { api_key: key, partner_id } = await service.newKey({ requests_per_second: 100_000 });
      const body = { name: 'a site', origins: [PAGE] };
      const made = await service.call('POST', '/v1/trackers', { key, body });
      return { key, partner_id, tracker_id: made.body.id, record: emptyRecord() };
    },
    kill: {
      server: killServer,
      postgres: async () => service.killPostgres(),
      both: () => {
        service.killPostgres();
        return killServer();
      },
    },
    close: async () => {
      await store.close();
      await service.remove();
      await postgres.stop();
      provider.close();
    },
  };
};

let serial = Math.floor(Math.random() * 2 ** 24);
const net = 20 + (Date.now() % 60);
/** A visitor's address. Every third is one of few, so that results are saved for it soon. */
export const nextIp = (): string => {
  serial = (serial + 1) % 2 ** 24;
  return serial % 3 === 0
    ? `${net}.0.0.${serial % 50}`
    : `${net}.${serial >> 16}.${(serial >> 8) & 255}.${serial & 255}`;
};
