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

it('a process without a row counts as dead', () => {
  expect(createLiveness().isGone('other')).toBe(true);
});
