import type { Clock } from '../../platform/clock/clock.ts';

/** A clock that moves only when the test moves it. Times in milliseconds. */
export interface ManualClock extends Clock {
  advance(ms: number): void;
  set(ms: number): void;
}

/** In the middle of an hour and of a day. */
export const NOON = Date.UTC(2026, 2, 14, 12, 30);

export const manualClock = (start = NOON): ManualClock => {
  let now = start;
  return {
    now: () => now,
    advance: (ms) => {
      now += ms;
    },
    set: (ms) => {
      now = ms;
    },
  };
};
