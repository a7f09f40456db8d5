import { performance } from 'node:perf_hooks';

/** How long the event loop has waited and worked since it began, in milliseconds. */
export interface LoopTimes {
  readonly idle: number;
  readonly active: number;
}

/**
 * How long small batches gather while the event loop is busy, even if a caller waits: the statements of a batch, in each group
 * of projections and each processor, hardly depend on its number of events, and take time from all callers.
 */
export const BUSY_GATHER_MS = 40;

/** In a shorter window a single long task would count as load. */
const MIN_WINDOW_MS = 200;
/** A longer window says too little about the present. */
const MAX_WINDOW_MS = 1_000;
/** Requests wait noticeably for each other where the event loop works for more than this part of the time. */
const BUSY_UTILIZATION = 0.75;

/**
 * Creates a function that returns whether the event loop is busy, so that work should be done in larger batches. Calls measure
 * the time between them, because a timer would wake an idle process: the first call after more than a second only begins a new
 * window and returns false.
 */
export const createBusyness = (
  read: () => LoopTimes = () => performance.eventLoopUtilization(),
): (() => boolean) => {
  let since = read();
  let isBusy = false;
  return () => {
    const times = read();
    const active = times.active - since.active;
    const windowMs = active + times.idle - since.idle;
    if (windowMs < MIN_WINDOW_MS) return isBusy;
    isBusy = windowMs <= MAX_WINDOW_MS && active / windowMs > BUSY_UTILIZATION;
    since = times;
    return isBusy;
  };
};
