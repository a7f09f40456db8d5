import { expect, it } from 'vitest';
import { createLocalLimiter } from '../../platform/local-limiter.ts';
import { createCaptureRates } from '../../write-api/sessions/capture-rates.ts';

const RATES = { CAPTURES_PER_SECOND: 20, CAPTURES_PER_SECOND_PER_TRACKER: 10 };

/** Captures by tracker, evenly over each second; returns the admitted captures of the last second. */
const admittedOf = async (perSecond: Readonly<Record<string, number>>, seconds: number) => {
  const clock = { ms: 60_000, now: () => clock.ms };
  const admit = createCaptureRates(RATES, createLocalLimiter(clock), clock, null);
  const admitted: Record<string, number> = {};
  for (let ms = 1; ms <= seconds * 1_000; ms += 1) {
    clock.ms += 1;
    for (const [tracker_id, count] of Object.entries(perSecond)) {
      if (ms % (1_000 / count) !== 0) continue;
      const [partner_id = ''] = tracker_id.split(' ');
      if ((await admit({ tracker_id, partner_id })) !== null || ms <= (seconds - 1) * 1_000) continue;
      admitted[tracker_id] = (admitted[tracker_id] ?? 0) + 1;
    }
  }
  return admitted;
};

it("admits a partner's captures while another partner's trackers exceed the total rate", async () => {
  expect(await admittedOf({ 'anna 1': 100, 'anna 2': 100, 'ben 1': 5 }, 10)).toMatchObject({ 'ben 1': 5 });
});

it('lets the trackers of one partner use the total rate while no other partner is refused', async () => {
  expect(await admittedOf({ 'anna 1': 100, 'anna 2': 100 }, 10)).toEqual({ 'anna 1': 10, 'anna 2': 10 });
});
