import { afterAll, beforeAll, expect, it } from 'vitest';
import { createEventStoreDb } from '../../event-store/eventstoredb/store.ts';
import type { EventStore } from '../../event-store/port.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import type { Called } from '../support/call.ts';
import { eventually } from '../support/eventually.ts';
import { COMPANY, respond, startProvider, type TestProvider } from '../support/http-provider.ts';
import { type Service, startService } from '../support/service.ts';
import { describeOnStores } from '../support/stores.ts';
import { type Caller, emptyRecord, oneMore, startLoad } from './load.ts';
import { readLog, reservationsIn, roundsIn, SUBMISSION_PREFIXES } from './submissions.ts';

const ROUNDS = Number(process.env.KILL_ROUNDS ?? 3);
const TEST_MS = 120_000 + ROUNDS * 30_000;
const RECOVERED_MS = 30_000;
/** A killed process's attempts are due again after their lease. */
const COMPLETED_MS = 50_000;

let serial = Math.floor(Math.random() * 2 ** 24);
/** An address that was never requested, also not in an earlier run on the same event store. */
const nextIp = (): string => {
  serial = (serial + 1) % 2 ** 24;
  return `${20 + (Date.now() % 60)}.${serial >> 16}.${(serial >> 8) & 255}.${serial & 255}`;
};
const soon = (): number => 50 + Math.floor(Math.random() * 150);
const POLL_MS = 250;

describeOnStores('kills under lookup load', ({ EVENTSTORE_URL: url }) => {
  let service: Service;
  let provider: TestProvider;
  let callers: readonly Caller[];
  let store: EventStore;
  let postgres: EmbeddedPostgres | undefined;
  let stopLoad = async (): Promise<void> => {};
  const record = emptyRecord();

  beforeAll(async () => {
    let asked = 0;
    provider = await startProvider((_ip, response) => {
      asked += 1;
      respond(response, asked % 7 === 0 ? 500 : 200, COMPANY);
    });
    const tuned = {
      RETRY_BASE_SECONDS: '0.2',
      ENRICHMENT_HTTP_TIMEOUT_MS: '1000',
      ENRICHMENT_INTAKE_PER_MINUTE: '999999',
    };
    const env = { ...provider.env, ...tuned, ...(url === undefined ? {} : { EVENTSTORE_URL: url }) };
    service = await startService({ env });
    const roomy = ['--requests-per-second', '100000', '--pending-enrichments', '100000'];
    const first = await service.newKey(roomy);
    const second = await service.newKey(roomy);
    callers = [first, second].map(({ api_key: key, partner_id }) => ({ key, partner_id }));
    const quiet = { info: () => {}, warn: () => {}, error: () => {} };
    postgres = await startEmbeddedPostgres({ dataDir: service.dataDir, mode: 'join', log: quiet });
    store =
      url === undefined
        ? createPostgresEventStore({ url: postgres.url, now: Date.now })
        : createEventStoreDb({ url, now: Date.now });
  }, 90_000);
  afterAll(async () => {
    await stopLoad();
    await store?.close();
    await service?.remove();
    await postgres?.stop();
    provider?.close();
  });

  const get = (key: string, path: string) => service.call('GET', path, { key });
  /** Those of this run's partners: an event store may hold other runs' too. */
  const ownReservations = async () => {
    const own = new Set(callers.map(({ partner_id }) => partner_id));
    return reservationsIn(await readLog(store, SUBMISSION_PREFIXES)).filter(({ partner_id }) =>
      own.has(partner_id),
    );
  };
  const usageOf = async (key: string) => (await get(key, '/v1/usage')).body;

  /** Looks up each address that was acknowledged. */
  const eachAcknowledged = async (
    { key, partner_id }: Caller,
    check: (answer: Called, ip: string) => void,
  ): Promise<void> => {
    const left = [...(record.acknowledged.get(partner_id) ?? [])];
    const checkLeft = async (): Promise<void> => {
      for (let ip = left.pop(); ip !== undefined; ip = left.pop()) {
        const answer = await get(key, `/v1/lookup?ip=${ip}`);
        oneMore(record.counted, key);
        check(answer, ip);
      }
    };
    await Promise.all(Array.from({ length: 8 }, checkLeft));
  };

  /** Expects everything that was acknowledged since the beginning. */
  const verify = async (): Promise<void> => {
    expect(record.unexpected).toEqual([]);
    for (const { key, partner_id } of callers) {
      const { requests } = (await usageOf(key)).totals;
      const counted = record.counted.get(key) ?? 0;
      expect(requests).toBeGreaterThanOrEqual(counted);
      expect(requests).toBeLessThanOrEqual(counted + (record.uncertain.get(key) ?? 0));
      await eachAcknowledged({ key, partner_id }, ({ status, body }, ip) =>
        expect([200, 202], `${ip}: ${JSON.stringify(body)}`).toContain(status),
      );
    }
    const rows = await ownReservations();
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) {
      expect([row.made, row.submitted <= 1, row.settled <= 1], JSON.stringify(row)).toEqual([1, true, true]);
    }
    const onePerPartner = new Set(rows.map(({ partner_id, ip }) => `${partner_id} ${ip}`));
    expect(onePerPartner.size).toBe(rows.length);
  };

  /** Expects every submission to be completed and every reservation settled once. */
  const verifyEnd = async (): Promise<void> => {
    for (const { key } of callers) {
      await eventually(
        'all submissions have completed',
        async () => (await usageOf(key)).enrichment,
        ({ pending }) => pending === 0,
        COMPLETED_MS,
        POLL_MS,
      );
    }
    await eventually(
      'all reservations are settled',
      async () => (await ownReservations()).filter((row) => row.settled !== 1),
      (unsettled) => unsettled.length === 0,
      RECOVERED_MS,
      POLL_MS,
    );
    const rounds = roundsIn(await readLog(store, SUBMISSION_PREFIXES));
    for (const { ip } of await ownReservations()) expect(rounds.get(ip), ip).toBe(1);
    for (const caller of callers) {
      await eachAcknowledged(caller, ({ status }, ip) => expect(status, ip).toBe(200));
    }
  };

  const underLoad = async (kill: () => Promise<void>): Promise<void> => {
    const answersAfter = async (more: number): Promise<void> => {
      const enough = record.answers + more;
      await eventually(`${more} answers`, () => record.answers > enough, Boolean, RECOVERED_MS);
    };
    stopLoad = startLoad(service, callers, nextIp, record);
    await answersAfter(soon());
    await kill();
    await answersAfter(50);
    await stopLoad();
    await verify();
  };

  it(
    `lose nothing that was acknowledged when the server is killed ${ROUNDS} times`,
    async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        await underLoad(async () => {
          await service.kill();
          await service.restart();
        });
      }
      await verifyEnd();
    },
    TEST_MS,
  );

  it(
    'lose nothing that was acknowledged when PostgreSQL is killed under a running server',
    async () => {
      const { pid } = service;
      await underLoad(async () => service.killPostgres());
      await verifyEnd();
      expect(service.pid).toBe(pid);
    },
    TEST_MS,
  );
});
