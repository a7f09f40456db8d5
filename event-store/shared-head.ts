import { coalesceNext } from '../platform/coalesce-next.ts';
import { BUSY_GATHER_MS } from '../platform/event-loop.ts';
import { pause } from '../platform/pause.ts';
import type { EventStore } from './port.ts';

/**
 * Makes concurrent callers share reads of the head: each request for something unknown asks for it, and EventStoreDB reads whole
 * events for it. While the event loop is busy, calls gather for `BUSY_GATHER_MS`, as the tail does. `gapMs` as in `coalesceNext`.
 */
export const withSharedHead = (
  store: EventStore,
  isEventLoopBusy: () => boolean,
  gapMs: number,
): EventStore => ({
  ...store,
  head: coalesceNext(async () => {
    if (isEventLoopBusy()) await pause(BUSY_GATHER_MS);
    return store.head();
  }, gapMs),
});
