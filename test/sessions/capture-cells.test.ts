import { expect, it, onTestFinished, vi } from 'vitest';
import { type Cell, HONEST, type Kind, makeCell, playCell } from '../support/capture-cells.ts';

const CELLS = 30;

/** A clock that all time of a test follows. */
const startClock = () => {
  const clock = { ms: 60_000, now: () => clock.ms };
  const monotonic = vi.spyOn(performance, 'now').mockImplementation(clock.now);
  onTestFinished(() => monotonic.mockRestore());
  return clock;
};

/** Refused captures by kind, percent, a mean of the cells. What each change of the rates does to all is seen here. */
const refused = async (): Promise<Record<(typeof HONEST)[number], number>> => {
  const clock = startClock();
  const percents = new Map<Kind, number[]>(HONEST.map((kind) => [kind, []]));
  for (let seed = 1; seed <= CELLS; seed += 1) {
    clock.ms += 600_000;
    for (const [kind, count] of await playCell(makeCell(seed), clock, seed))
      percents.get(kind)?.push((100 * count.refused) / count.sent);
  }
  const meanOf = (kind: Kind): number => {
    const all = percents.get(kind) ?? [];
    return all.reduce((sum, one) => sum + one, 0) / all.length;
  };
  return {
    visitors: meanOf('visitors'),
    bursts: meanOf('bursts'),
    'a large network': meanOf('a large network'),
  };
};

it('few networks that flood have few captures of others refused, in many shapes of both', {
  timeout: 120_000,
}, async () => {
  const means = await refused();
  expect(means.visitors).toBeLessThan(0.4);
  // Some come together with as many first captures of the flood as the rate of the tracker has room for.
  expect(means.bursts).toBeLessThan(4.5);
  expect(means['a large network']).toBeLessThan(2);
});

it('a burst of visits that finds its room leaves room for the next', async () => {
  const bursts = { every: 21, width: 0.3 };
  const sources: Cell['sources'] = [
    { kind: 'bursts', trackers: ['site'], networks: 5_000, perSecond: 85 / bursts.every, bursts },
    { kind: 'a flood', trackers: ['a', 'b', 'c'], networks: 1, perSecond: 300 },
  ];
  const counts = await playCell({ processes: 1, sources }, startClock(), 1, 8 * bursts.every);
  const { sent = 0, refused = 0 } = counts.get('bursts') ?? {};
  expect(sent).toBeGreaterThan(500);
  expect(refused).toBeLessThan(0.12 * sent);
});
