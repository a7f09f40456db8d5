import { describe, expect, it } from 'vitest';
import { createStartsPace } from '../../processors/webhooks/starts-pace.ts';

/** Attempts that are always due. */
const scene = () => {
  let now = 0;
  let busy = false;
  const pace = createStartsPace(
    () => busy,
    () => now,
  );
  return {
    become: (isBusy: boolean): void => {
      busy = isBusy;
    },
    /** Starts as many as may, up to `wanted` every 10 ms, for `ms`. Returns how many. */
    start: (ms: number, wanted: number): number => {
      let started = 0;
      for (const end = now + ms; now < end; ) {
        now += 10;
        const count = Math.min(wanted, pace.room());
        pace.started(count);
        started += count;
      }
      return started;
    },
  };
};

describe('the pace at which attempts start', () => {
  it('has no limit while the event loop is not busy', () => {
    expect(scene().start(10_000, 100)).toBe(1_000 * 100);
  });

  it('halves in each window in which it is busy, down to 1,000 a second', () => {
    const { become, start } = scene();
    start(200, 100);
    become(true);
    start(200, 100);
    const windows = [1, 2, 3, 4].map(() => start(200, 100) * 5);
    expect(windows[0]).toBeGreaterThan(1_800);
    expect(windows[0]).toBeLessThan(2_600);
    expect(windows.slice(2)).toEqual([1_000, 1_000]);
  });

  it('does not limit fewer starts than that', () => {
    const { become, start } = scene();
    become(true);
    start(1_000, 1);
    expect(start(1_000, 1)).toBe(100);
  });

  it('rises again once it is not busy, until it has no limit', () => {
    const { become, start } = scene();
    become(true);
    start(2_000, 100);
    become(false);
    const seconds = Array.from({ length: 10 }, () => start(1_000, 100));
    for (const [nth, started] of seconds.entries())
      expect(started).toBeGreaterThanOrEqual(seconds[nth - 1] ?? 1_000);
    expect(seconds.at(-1)).toBe(100 * 100);
  });

  it('does not save up what was not used', () => {
    const { become, start } = scene();
    become(true);
    start(1_000, 100);
    start(60_000, 0);
    expect(start(10, 1_000)).toBeLessThanOrEqual(200);
  });
});
