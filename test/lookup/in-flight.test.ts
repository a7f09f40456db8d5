import { expect, it } from 'vitest';
import { createKeptOut } from '../../platform/kept-out.ts';
import { createInFlight } from '../../read-api/lookup/in-flight.ts';

const WINDOW_MS = 60_000;

/** Room for four addresses. */
const inFlightOfFour = () => {
  const clock = { ms: WINDOW_MS };
  const keptOut = createKeptOut({ windowMs: WINDOW_MS, now: () => clock.ms, shared: null });
  return { clock, ...createInFlight(4, keptOut) };
};

it('one asker alone may look up as many addresses at once as the ceiling allows', () => {
  const { enter } = inFlightOfFour();
  const admitted = ['1', '2', '3', '4', '5'].filter((ip) => enter(ip, 'anna') !== null);
  expect(admitted).toEqual(['1', '2', '3', '4']);
});

it('an asker that was refused gets its part as soon as lookups of the other end, however many the other begins', () => {
  const { enter } = inFlightOfFour();
  const leave = ['1', '2', '3', '4'].map((ip) => enter(ip, 'anna'));
  expect(enter('5', 'ben')).toBeNull();
  leave[0]?.();
  expect(enter('6', 'anna')).toBeNull();
  expect(enter('5', 'ben')).not.toBeNull();
  leave[1]?.();
  expect(enter('7', 'anna')).toBeNull();
  expect(enter('8', 'ben')).not.toBeNull();
  expect(enter('9', 'ben')).toBeNull();
});

it('an asker has all of the ceiling again a minute after another was refused', () => {
  const { enter, clock } = inFlightOfFour();
  const leave = ['1', '2', '3', '4'].map((ip) => enter(ip, 'anna'));
  expect(enter('5', 'ben')).toBeNull();
  leave[0]?.();
  clock.ms += WINDOW_MS;
  expect(enter('6', 'anna')).not.toBeNull();
});

it('an address that several ask for counts once, until the last of its lookups has ended', () => {
  const { enter } = inFlightOfFour();
  const leave = ['1', '2', '3', '4'].map((ip) => enter(ip, 'anna'));
  const joined = enter('1', 'ben');
  leave[0]?.();
  expect(enter('5', 'clara')).toBeNull();
  joined?.();
  expect(enter('5', 'clara')).not.toBeNull();
});
