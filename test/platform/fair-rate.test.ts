import { expect, it } from 'vitest';
import { createFairRate } from '../../platform/fair-rate.ts';
import { createKeptOut } from '../../platform/kept-out.ts';
import { createLocalLimiter } from '../../platform/rate-limit.ts';

const MINUTE = 60_000;

/** An intake of 90 a minute, and a clock that is moved by hand. */
const anIntake = () => {
  const clock = { ms: MINUTE, now: () => clock.ms };
  const { admit } = createLocalLimiter(clock);
  const intake = createFairRate({
    ceiling: 90,
    // Exact, which PostgreSQL's is too; by ceiling, as that of a part changes.
    admit: (name, ceiling) => admit(`${name} ${ceiling}`, ceiling, MINUTE),
    keptOut: createKeptOut({ windowMs: MINUTE, now: clock.now, shared: null }),
  });
  const isAdmitted = async (asker: string) => (await intake(asker)) === null;
  /** How many of so many tries a second are admitted within a minute, by asker. */
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

it('lets one partner that asks alone take all of the intake', async () => {
  const { minuteOf } = anIntake();
  expect(await minuteOf({ anna: 50 })).toEqual({ anna: 90 });
  expect(await minuteOf({ anna: 50 })).toEqual({ anna: 90 });
});

it('admits what others ask for beside a partner that asks for more than there is', async () => {
  const { minuteOf } = anIntake();
  await minuteOf({ anna: 50 });
  await minuteOf({ anna: 50, ben: 1 });
  const { anna = 0, ben = 0 } = await minuteOf({ anna: 50, ben: 1 });
  // Without parts, the first of 51 tries takes each place that comes free.
  expect(ben).toBeGreaterThan(30);
  expect(anna + ben).toBeGreaterThan(70);
});

it('lets a partner take all again a minute after nobody else found the intake full', async () => {
  const { minuteOf } = anIntake();
  await minuteOf({ anna: 50, ben: 50 });
  await minuteOf({ anna: 50 });
  await minuteOf({ anna: 50 });
  expect(await minuteOf({ anna: 50 })).toEqual({ anna: 90 });
});
