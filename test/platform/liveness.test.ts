import { expect, it } from 'vitest';
import { createLiveness } from '../../platform/leases/process-registry.ts';

const other = (beats: number, connected = true) => [{ process_id: 'other', beats: String(beats), connected }];

it('a process counts as alive while its heartbeats continue, whatever its clock says', () => {
  const liveness = createLiveness();
  for (let n = 0; n < 10; n += 1) {
    liveness.observe(other(n), n * 1_250);
    expect(liveness.isGone('other')).toBe(false);
  }
});

it('a process counts as dead when its heartbeat count is unchanged in three checks over three seconds', () => {
  const liveness = createLiveness();
  const goneAt = [0, 1_250, 2_500, 3_750].map((ms) => {
    liveness.observe(other(7), ms);
    return liveness.isGone('other');
  });
  expect(goneAt).toEqual([false, false, false, true]);
});

it('a process does not count as dead when the database was unavailable for the checks', () => {
  const liveness = createLiveness();
  liveness.observe(other(7), 0);
  liveness.observe(other(7), 60_000);
  expect(liveness.isGone('other')).toBe(false);
});

it('a process without a session counts as dead at the second check, which follows soon', () => {
  const liveness = createLiveness();
  liveness.observe(other(7, false), 0);
  expect([liveness.isGone('other'), liveness.hasDoubt()]).toEqual([false, true]);
  liveness.observe(other(7, false), 250);
  expect([liveness.isGone('other'), liveness.hasDoubt()]).toEqual([true, false]);
});

it('a process that has reconnected counts as alive', () => {
  const liveness = createLiveness();
  liveness.observe(other(7, false), 0);
  liveness.observe(other(8, true), 250);
  expect(liveness.isGone('other')).toBe(false);
});

it('a process without a row counts as dead', () => {
  expect(createLiveness().isGone('other')).toBe(true);
});
