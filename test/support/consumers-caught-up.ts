import { CONSUMERS } from '../../bin/groups.ts';
import { createConsumerProgress } from '../../processors/consumers.ts';
import type { TestApi } from './api.ts';
import { until } from './until.ts';

/** Waits until read models and processors have handled everything and saved that: a sweep deletes nothing before. */
export const consumersCaughtUp = async (api: TestApi): Promise<void> => {
  const { pool, store } = api.runtime;
  await api.caughtUp();
  const consumerProgress = createConsumerProgress(pool, CONSUMERS);
  const { signal } = new AbortController();
  await until('every consumer has caught up', async () =>
    consumerProgress.waitFor(await store.head(), signal),
  );
};

/** Waits until read models and processors have handled everything. @throws if an event stops one of them */
export const nothingStops = async (api: TestApi): Promise<void> => {
  const { sql, runtime } = api;
  const progress = createConsumerProgress(runtime.pool, CONSUMERS);
  const head = await runtime.store.head();
  const { signal } = new AbortController();
  await until('every consumer has caught up, or one has stopped', async () => {
    const { rows } = await sql.query<{ stopped: string }>(STOPPED);
    if (rows.length > 0) throw new Error(rows.map(({ stopped }) => stopped).join('; '));
    return progress.waitFor(head, signal);
  });
};

const STOPPED = `
  select name || ' was stopped by ' || stopped_by as stopped
  from (select name, stopped_by from read.projection union all select name, stopped_by from work.processor) consumers
  where stopped_by is not null`;
