/** The traces of nightly upkeep and of an operator in a release's log. */
import { expect } from 'vitest';
import { snapshotOldEnrichments } from '../../bin/retention.ts';
import { setCeilings } from '../../commands/partners/manage-partner.ts';
import { truncateIntakes } from '../../processors/lookup/settle-reservations.ts';
import type { TestApi } from '../support/api.ts';
import { until } from '../support/until.ts';

const RUN = { signal: new AbortController().signal, forMs: 60_000, onBlocked: () => undefined };

/** Cuts the times of all saved results of past days to their days. */
export const snapshotResults = async (api: TestApi): Promise<void> => {
  await until('the results of past days are snapshots', async () => {
    await api.caughtUp();
    await snapshotOldEnrichments(api.runtime, RUN);
    await api.caughtUp();
    const left = `select from read.saved_lookup where not snapshotted and enriched_at < $1::date`;
    return (await api.sql.query(left, [new Date(api.runtime.clock.now())])).rowCount === 0;
  });
};

/** Changes a partner's ceilings and takes the nightly snapshots. */
export const passNights = async (api: TestApi, partner_id: string): Promise<void> => {
  const { store, clock } = api.runtime;
  const context = { correlationId: 'a test', causationId: 'a test', at: clock.now() };
  const ceilings = { requests_per_second: 60, keys: 90 };
  expect(await setCeilings(store, { partner_id, ceilings }, context)).toMatchObject({ ok: true });
  await snapshotResults(api);
  await truncateIntakes(api.runtime);
  await api.caughtUp();
};
