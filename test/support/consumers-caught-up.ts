import { CONSUMERS } from '../../bin/retention.ts';
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
