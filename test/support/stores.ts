import { describe, it } from 'vitest';

const { EVENTSTORE_URL } = process.env;

/** The environment variables of a service on one store. */
export type StoreEnv = Readonly<Record<string, string>>;

/**
 * Describes tests on PostgreSQL and on the EventStoreDB that `EVENTSTORE_URL` names; without it they are skipped
 * by name.
 */
export const describeOnStores = (what: string, body: (env: StoreEnv) => void): void => {
  describe(`${what} on PostgreSQL`, () => body({}));
  const other = `${what} on EventStoreDB, where EVENTSTORE_URL names one`;
  if (EVENTSTORE_URL === undefined) describe(other, () => it.skip('is skipped', () => undefined));
  else describe(other, () => body({ EVENTSTORE_URL }));
};
