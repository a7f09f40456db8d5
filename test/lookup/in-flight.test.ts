import { expect, it } from 'vitest';
import { createInFlight } from '../../read-api/lookup/get-lookup.ts';

it('admits as many distinct addresses as the ceiling, and an address once, until its last lookup has ended', () => {
  const { enter } = createInFlight(4);
  const leave = ['1', '2', '3', '4'].map((ip) => enter(ip));
  expect(leave).not.toContain(null);
  expect(enter('5')).toBeNull();
  const joined = enter('1');
  leave[0]?.();
  expect(enter('5')).toBeNull();
  joined?.();
  expect(enter('5')).not.toBeNull();
});
