import { afterAll, beforeAll, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { describeOnStores } from '../support/stores.ts';
import { type Killable, nextIp, startKillable } from './killable.ts';
import { verifyCompleted, verifyRecord } from './verify-tracking.ts';
import { type Customer, startVisitors } from './visitors.ts';

/** The rounds; a hundred are run by hand, because they take long. */
const ROUNDS = Number(process.env.DOORPLATE_KILL_ROUNDS ?? 5);
const TEST_MS = 120_000 + ROUNDS * 30_000;
const RECOVERED_MS = 30_000;

const soon = (): number => 200 + Math.floor(Math.random() * 600);

describeOnStores('kills under tracking load', ({ EVENTSTORE_URL: url }) => {
  let killable: Killable;
  let customers: readonly Customer[];
  let stopVisitors = async (): Promise<void> => {};

  beforeAll(async () => {
    killable = await startKillable(url);
    customers = [await killable.newCustomer(), await killable.newCustomer()];
  }, 90_000);
  afterAll(async () => {
    await stopVisitors();
    await killable?.close();
  });

  const underLoad = async (kill: () => Promise<void>): Promise<void> => {
    const { service } = killable;
    const answers = (): number => customers.reduce((sum, { record: told }) => sum + told.answers, 0);
    const answersAfter = async (more: number): Promise<void> => {
      const enough = answers() + more;
      await eventually(`${more} answers`, () => answers() > enough, Boolean, RECOVERED_MS);
    };
    stopVisitors = startVisitors(service, customers, nextIp);
    await answersAfter(soon());
    await kill();
    await answersAfter(200);
    await stopVisitors();
    await Promise.all(customers.map((customer) => verifyRecord(service, customer)));
  };

  it(
    `lose nothing that was acknowledged when server, PostgreSQL or both are killed ${ROUNDS} times`,
    async () => {
      const { service, store, kill } = killable;
      const kills = [kill.server, kill.postgres, kill.both];
      for (let round = 0; round < ROUNDS; round += 1) {
        await underLoad(kills[round % kills.length] ?? kill.server);
      }
      await Promise.all(customers.map((customer) => verifyCompleted(service, store, customer)));
    },
    TEST_MS,
  );
});
