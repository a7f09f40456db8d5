import { expect, it } from 'vitest';
import { createLiveness } from '../../platform/liveness.ts';

const other = (beats: number, connected = true) => [{ process_id: 'other', beats: String(beats), connected }];

it('takes a process for alive while its heartbeats go on, whatever its clock says', () => {
  const liveness = createLiveness();
  for (let n = 0; n < 10; n += 1) {
    liveness.observe(other(n), n * 1_250);
    expect(liveness.isGone('other')).toBe(false);
  }
});

it('takes a process whose count stands still for gone, after three sightings over three seconds', () => {
  const liveness = createLiveness();
  const goneAt = [0, 1_250, 2_500, 3_750].map((ms) => {
    liveness.observe(other(7), ms);
    return liveness.isGone('other');
  });
  expect(goneAt).toEqual([false, false, false, true]);
});

it('does not take a process for gone that could not be seen because the database was away', () => {
  const liveness = createLiveness();
  liveness.observe(other(7), 0);
  liveness.observe(other(7), 60_000);
  expect(liveness.isGone('other')).toBe(false);
});

it('takes a process without a session for gone at the second sighting, and looks again soon', () => {
  const liveness = createLiveness();
  liveness.observe(other(7, false), 0);
  expect([liveness.isGone('other'), liveness.hasDoubt()]).toEqual([false, true]);
  liveness.observe(other(7, false), 250);
  expect([liveness.isGone('other'), liveness.hasDoubt()]).toEqual([true, false]);
});

it('takes a process that has connected again for alive', () => {
  const liveness = createLiveness();
  liveness.observe(other(7, false), 0);
  liveness.observe(other(8, true), 250);
  expect(liveness.isGone('other')).toBe(false);
});

it('takes a process without a row for gone', () => {
  expect(createLiveness().isGone('other')).toBe(true);
});
