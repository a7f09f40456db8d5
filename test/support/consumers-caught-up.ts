import { CONSUMERS } from '../../bin/retention.ts';
import { createPassage } from '../../processors/consumers.ts';
import type { TestApi } from './api.ts';
import { until } from './until.ts';

/** Waits until read models and processors have handled everything and saved that: a sweep deletes nothing before. */
export const consumersCaughtUp = async (api: TestApi): Promise<void> => {
  const { pool, store } = api.runtime;
  await api.caughtUp();
  const passage = createPassage(pool, CONSUMERS);
  const { signal } = new AbortController();
  await until('every consumer has caught up', async () => passage.come(await store.head(), signal));
};
