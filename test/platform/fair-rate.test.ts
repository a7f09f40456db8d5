import { expect, it } from 'vitest';
import { createFairRate, fairPart } from '../../platform/fair-rate.ts';
import { createKeptOut } from '../../platform/kept-out.ts';
import { createLocalLimiter } from '../../platform/rate-limit.ts';

const MINUTE = 60_000;

/** A rate of 90 a minute on a manual clock. */
const anIntake = () => {
  const clock = { ms: MINUTE, now: () => clock.ms };
  const { admit } = createLocalLimiter(clock);
  const intake = createFairRate({
    ceiling: 90,
    // Exact, as PostgreSQL's is; kept by ceiling, because a share's ceiling changes.
    admit: (name, ceiling) => admit(`${name} ${ceiling}`, ceiling, MINUTE),
    keptOut: createKeptOut({ windowMs: MINUTE, now: clock.now, shared: null }),
  });
  const isAdmitted = async (asker: string) => (await intake(asker)) === null;
  /** The admitted tries within a minute by partner, for the given tries a second. */
  const minuteOf = async (tries: Readonly<Record<string, number>>) => {
    const admitted: Record<string, number> = {};
    for (let second = 0; second < 60; second += 1) {
      clock.ms += 1_000;
      for (const [asker, perSecond] of Object.entries(tries)) {
        for (let nth = 0; nth < perSecond; nth += 1) {
          admitted[asker] = (admitted[asker] ?? 0) + ((await isAdmitted(asker)) ? 1 : 0);
        }
      }
    }
    return admitted;
  };
  return { minuteOf };
};

it('an asker has what the others leave, and at least an equal part', () => {
  const unknown = Number.POSITIVE_INFINITY;
  expect(fairPart(90, [])).toBe(90);
  expect(fairPart(90, [unknown, unknown])).toBe(30);
  expect(fairPart(90, [1, 2])).toBe(87);
  expect(fairPart(90, [unknown, 10])).toBe(40);
  expect(fairPart(90, [80, 80])).toBe(30);
  expect(fairPart(2, [unknown, unknown])).toBe(1);
});

it('a partner that asks alone gets the whole rate', async () => {
  const { minuteOf } = anIntake();
  expect(await minuteOf({ anna: 50 })).toEqual({ anna: 90 });
  expect(await minuteOf({ anna: 50 })).toEqual({ anna: 90 });
});

it('partners with few requests are admitted beside a partner that exceeds the rate', async () => {
  const { minuteOf } = anIntake();
  await minuteOf({ anna: 50 });
  await minuteOf({ anna: 50, ben: 1 });
  const { anna = 0, ben = 0 } = await minuteOf({ anna: 50, ben: 1 });
  // Without shares, the first of 51 tries takes each slot that becomes free.
  expect(ben).toBeGreaterThan(30);
  expect(anna + ben).toBeGreaterThan(70);
});

it('a partner gets the whole rate again a minute after the last refusal of another partner', async () => {
  const { minuteOf } = anIntake();
  await minuteOf({ anna: 50, ben: 50 });
  await minuteOf({ anna: 50 });
  await minuteOf({ anna: 50 });
  expect(await minuteOf({ anna: 50 })).toEqual({ anna: 90 });
});
