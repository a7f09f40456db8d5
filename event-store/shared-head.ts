import { coalesceNext } from '../platform/limits/coalesce.ts';
import type { EventStore } from './port.ts';

/**
 * Makes concurrent callers share reads of the head: each request for something unknown asks for it, and EventStoreDB reads whole
 * events for it. `gapMs` as in `coalesceNext`.
 */
export const withSharedHead = (store: EventStore, gapMs: number): EventStore => ({
  ...store,
  head: coalesceNext(() => store.head(), gapMs),
});
