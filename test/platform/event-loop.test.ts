import { expect, it } from 'vitest';
import { createBusyness } from '../../platform/event-loop.ts';

/** Busyness of an event loop that has run for a minute; `spend` has it work for a part of some milliseconds. */
const setUp = () => {
  let times = { idle: 30_000, active: 30_000 };
  const isBusy = createBusyness(() => times);
  const spend = (ms: number, active: number) => {
    times = { idle: times.idle + ms * (1 - active), active: times.active + ms * active };
    return isBusy();
  };
  return { spend };
};

it('is busy after 200 ms with less than a quarter of them idle', () => {
  const { spend } = setUp();
  expect(spend(200, 0.8)).toBe(true);
  expect(spend(200, 0.7)).toBe(false);
  expect(spend(1_000, 0.8)).toBe(true);
});

it('stays as it is for 200 ms, however often it is called', () => {
  const { spend } = setUp();
  expect([spend(100, 1), spend(99, 1), spend(1, 1)]).toEqual([false, false, true]);
  expect([spend(100, 0), spend(99, 0), spend(1, 0)]).toEqual([true, true, false]);
});

it('begins again, not busy, when the last call was over a second ago', () => {
  const { spend } = setUp();
  expect(spend(200, 1)).toBe(true);
  expect(spend(1_001, 1)).toBe(false);
  expect(spend(199, 1)).toBe(false);
  expect(spend(1, 1)).toBe(true);
});
