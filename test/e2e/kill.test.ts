import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { describeOnStores } from '../support/stores.ts';
import { type Killable, nextIp, startKillable } from './killable.ts';
import { type Caller, emptyRecord, startLoad } from './load.ts';
import {
  type FlakyReceiver,
  startFlakyReceiver,
  verifyNotifications,
  type WebhookCustomer,
} from './notifications.ts';
import { verifySettled, verifySubmissions } from './verify-lookups.ts';
import { verifyCompleted, verifyRecord } from './verify-tracking.ts';
import { type Customer, startVisitors } from './visitors.ts';

/** Rounds of three kills; more are run by hand, because they take long. */
const ROUNDS = Number(process.env.DOORPLATE_KILL_ROUNDS ?? 1);
const TEST_MS = 180_000 + ROUNDS * 180_000;
const RECOVERED_MS = 90_000;

const soon = (): number => 50 + Math.floor(Math.random() * 150);

let serial = Math.floor(Math.random() * 2 ** 24);
/** An address that no visitor has and no earlier run on the same event store has requested. */
const nextLookup = (): string => {
  serial = (serial + 1) % 2 ** 24;
  return `${80 + (Date.now() % 20)}.${serial >> 16}.${(serial >> 8) & 255}.${serial & 255}`;
};

/** One run under all kinds of load at once, whose records the tests verify one after the other. */
describeOnStores(`${ROUNDS * 3} kills of server, PostgreSQL and both under load`, ({ EVENTSTORE_URL }) => {
  let receiver: FlakyReceiver;
  let killable: Killable;
  let subscribers: readonly WebhookCustomer[] = [];
  let customers: readonly Customer[] = [];
  let callers: readonly Caller[] = [];
  const record = emptyRecord();
  let stopLoad = async (): Promise<void> => {};

  const startAll = (): (() => Promise<void>) => {
    const stops = [
      startVisitors(killable.service, customers, nextIp),
      startLoad(killable.service, callers, nextLookup, record),
    ];
    return async () => void (await Promise.all(stops.map((stop) => stop())));
  };

  /** Waits until every kind of load has had this many more answers and requests. */
  const after = async (more: number): Promise<void> => {
    const counts = (): number[] => [
      record.answers,
      receiver.requests.length,
      ...customers.map((customer) => customer.record.answers),
    ];
    const enough = counts().map((count) => count + more);
    await eventually(
      `${more} more answers and requests of each kind`,
      counts,
      (now) => now.every((count, kind) => count >= (enough[kind] ?? 0)),
      RECOVERED_MS,
    );
  };

  beforeAll(async () => {
    receiver = await startFlakyReceiver();
    killable = await startKillable(EVENTSTORE_URL, { ...receiver.env, RETRY_BASE_SECONDS: '0.05' });
    subscribers = [await receiver.newCustomer(killable)];
    // Without an endpoint, whose reveals complete when they are read.
    customers = [...subscribers, await killable.newCustomer()];
    const roomy = { requests_per_second: 100_000, pending_enrichments: 100_000 };
    const keys = [await killable.service.newKey(roomy), await killable.service.newKey(roomy)];
    callers = keys.map(({ api_key: key, partner_id }) => ({ key, partner_id }));
  }, 90_000);
  afterAll(async () => {
    await stopLoad();
    await killable?.close();
    await receiver?.close();
  });

  it(
    'are survived: each kind of load goes on, PostgreSQL restarts under the running server',
    async () => {
      const { service, kill } = killable;
      stopLoad = startAll();
      for (let round = 0; round < ROUNDS; round += 1) {
        for (const killOne of [kill.server, kill.both]) {
          await after(soon());
          await killOne();
        }
        await after(soon());
        // Last, because its recovery drops the claims, so no lease has to end first.
        const { pid } = service;
        await kill.postgres();
        await after(soon());
        expect(service.pid).toBe(pid);
      }
      await stopLoad();
      receiver.heal();
    },
    TEST_MS,
  );

  it(
    'lose no notification and forge none',
    async () => {
      // Before any receipt is read: pending reveals complete without a request.
      await Promise.all(subscribers.map((customer) => verifyNotifications(killable, customer)));
      expect(receiver.unexpected).toEqual([]);
    },
    TEST_MS,
  );

  it(
    'lose no session, reveal, unit or count that was acknowledged',
    async () => {
      const { service, store } = killable;
      await Promise.all(
        customers.map(async (customer) => {
          await verifyRecord(service, customer);
          await verifyCompleted(service, store, customer);
        }),
      );
    },
    TEST_MS,
  );

  it(
    'lose no submission that was acknowledged and settle each once',
    async () => {
      const submissions = { service: killable.service, store: killable.store, callers, record };
      await verifySubmissions(submissions);
      await verifySettled(submissions);
    },
    TEST_MS,
  );
});
