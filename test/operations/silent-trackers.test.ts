import { describe, expect, it } from 'vitest';
import { DAY, HOUR, utcDay } from '../../domain/kernel/time.ts';
import { isSilent } from '../../queries/trackers/silent-trackers.ts';

/** A Friday. */
const FRIDAY = Date.parse('2026-11-20T17:00:00Z');
const daysAgo = (...ago: number[]): string[] => ago.map((n) => utcDay(FRIDAY - n * DAY));
const WEEKDAYS = daysAgo(0, 1, 2, 3, 4, 7);
const EVERY_DAY = daysAgo(0, 1, 2, 3, 4, 5, 6, 7);
const after = (hours: number): number => FRIDAY + hours * HOUR;

describe('a tracker whose last visit was on Friday at 17:00', () => {
  it.each([
    ['a day later, with visits every day', EVERY_DAY, 24, true],
    ['a minute less than a day later', EVERY_DAY, 24 - 1 / 60, false],
    ['three weeks later', EVERY_DAY, 21 * 24, true],
    ['on Saturday, with visits on weekdays', WEEKDAYS, 24, false],
    ['on Monday morning, with visits on weekdays', WEEKDAYS, 64, false],
    ['on Monday at 17:00, with visits on weekdays', WEEKDAYS, 72, true],
    ['after a week, with visits on two of seven days before', daysAgo(0, 1, 7), 200, false],
    ['after two weeks, with visits on three days and none the week before', daysAgo(0, 1, 2), 13 * 24, true],
    ['on the next day, with visits on three days and none the week before', daysAgo(0, 1, 2), 30, false],
  ])('%s', (_, days, hours, expected) => {
    expect(isSilent({ lastAt: FRIDAY, days }, after(hours))).toBe(expected);
  });
});
