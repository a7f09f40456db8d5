import { describe, expect, it } from 'vitest';
import { createDemand } from '../../write-api/sessions/demand.ts';
import type { Beyond } from '../../write-api/sessions/demand-elsewhere.ts';
import { createLevels } from '../../write-api/sessions/levels.ts';
import { createNetworkDemands } from '../../write-api/sessions/network-demand.ts';

const RATES = {
  CAPTURES_PER_SECOND: 200,
  CAPTURES_PER_SECOND_PER_TRACKER: 100,
  CAPTURES_PER_SECOND_PER_VISITOR: 10,
};

const create = (processes = 1) => {
  const clock = { ms: 60_000, now: () => clock.ms };
  const demands = createNetworkDemands(RATES, clock, () => processes);
  /** Counts some of a network to a tracker. @returns what is left for the last */
  const send = (
    network: string,
    count: number,
    {
      to = 'a tracker',
      isShort = false,
      elsewhere = 0,
      peakElsewhere = 0,
      beyondElsewhere = [] as Beyond[],
      networksHere = 1,
    } = {},
  ) =>
    Array.from({ length: count }, () => {
      const others = {
        areShort: isShort,
        first: elsewhere,
        peak: peakElsewhere,
        beyond: beyondElsewhere,
        networksHere,
      };
      const demand = demands.of(network, to, others, others);
      if (to !== 'full' && demand.isFirst) demands.countFirst(network, demand);
      return demand;
    }).at(-1);
  return { clock, send };
};

it('a network has as many first captures in a second as one visitor may have, in parts of the processes', () => {
  const { clock, send } = create(2);
  expect([send('one', 5)?.isFirst, send('one', 1)?.isFirst]).toEqual([true, false]);
  clock.ms += 1_000;
  expect(send('one', 5)?.isFirst).toBe(true);
});

it('a network has as many first captures in any second', () => {
  const { clock, send } = create();
  send('another', 1);
  clock.ms += 900;
  expect(send('one', 10)?.isFirst).toBe(true);
  clock.ms += 200;
  expect(send('one', 1)?.isFirst).toBe(false);
  clock.ms += 800;
  expect(send('one', 10)?.isFirst).toBe(true);
});

it('first captures of this second or of the one before leave less for those beyond', () => {
  const { clock, send } = create();
  for (let nth = 0; nth < 30; nth += 1) send(`visitor ${nth}`, 1);
  clock.ms += 1_000;
  expect(send('one', 1)).toMatchObject({ left: 170, leftThere: 70 });
  clock.ms += 2_000;
  expect(send('one', 1)).toMatchObject({ left: 200, leftThere: 99 });
});

it('a clock that is set back begins a second', () => {
  const { clock, send } = create();
  send('one', 11);
  clock.ms -= 60_000;
  expect(send('one', 1)).toMatchObject({ isFirst: true, leftThere: 99 });
});

it('there is room for more first captures after some were rejected, by their number and by those elsewhere', () => {
  const { send } = create();
  for (let nth = 0; nth < 50; nth += 1) send(`visitor ${nth}`, 1);
  expect(send('one', 1, { isShort: true })).toMatchObject({ left: 200 - 50 - 10, leftThere: 100 - 51 - 10 });
  // The root of 144 deviates by 12.
  expect(send('one', 1, { isShort: true, elsewhere: 94 })?.left).toBe(200 - 51 - 94 - 12);
});

it('first captures at other processes leave less too', () => {
  const { send } = create();
  expect(send('one', 1, { elsewhere: 20 })).toMatchObject({ left: 200 - 20, leftThere: 100 - 1 - 20 });
});

it('after a burst, there is room for another for half a minute at least, of half of the rate', () => {
  const { clock, send } = create(2);
  for (let nth = 0; nth < 30; nth += 1) send(`visitor ${nth}`, 1, { to: 'a' });
  clock.ms += 29_000;
  // Each of the two processes had thirty.
  expect(send('one', 1, { to: 'a', isShort: true })).toMatchObject({
    left: 200 - 60 - 10,
    leftThere: 50 - 10,
  });
  expect(send('one', 1, { to: 'a' })).toMatchObject({ left: 200 - 1, leftThere: 100 - 2 });
  clock.ms += 30_000;
  expect(send('one', 1, { to: 'a', isShort: true })?.left).toBe(200 - 60 - 10);
  clock.ms += 60_000;
  expect(send('one', 1, { to: 'a', isShort: true })?.left).toBe(200 - 10);
});

it('after a burst at another process, there is room for another beside one here', () => {
  const { clock, send } = create(2);
  send('one', 5);
  clock.ms += 1_000;
  expect(send('one', 1, { isShort: true, peakElsewhere: 60 })?.left).toBe(200 - (1 + 60) - 10);
  expect(send('one', 1, { isShort: true, peakElsewhere: 150 })?.left).toBe(200 - 100 - 10);
});

it('first captures that a tracker refuses are none of the service', () => {
  const { send } = create();
  for (let nth = 0; nth < 150; nth += 1) send(`visitor ${nth}`, 1, { to: 'full' });
  expect(send('one', 1)).toMatchObject({ left: 200, leftThere: 99 });
});

it.each([1, 2, 4])(
  'of a network, two captures in a second count for the next burst, of %i processes together',
  (processes) => {
    const { clock, send } = create(processes);
    for (const network of ['a', 'b', 'c', 'd', 'e']) send(network, 10);
    clock.ms += 2_000;
    const ofBurst = processes * 5 * Math.max(1, 2 / processes);
    expect(send('one', 1, { isShort: true })?.left).toBe(200 - ofBurst - 10);
  },
);

it('a process has its part of what there is beyond first captures, by what the networks of the others have', () => {
  const { send } = create();
  for (let nth = 0; nth < 50; nth += 1) send(`visitor ${nth}`, 1);
  const one = (captures: number) => ({ captures, networks: 1 });
  expect(send('one', 1, { beyondElsewhere: [one(30)] })?.left).toBe(150 - 30);
  expect(send('two', 1, { beyondElsewhere: [one(300)] })?.left).toBe((150 - 1) / 2 - 0.5);
  expect(send('three', 1, { beyondElsewhere: [one(300), one(20)] })?.left).toBe((150 - 2 - 20) / 2);
  expect(send('four', 1, { beyondElsewhere: [one(300)], networksHere: 6 })?.left).toBe(((150 - 3) / 7) * 6);
  const many = { captures: 300, networks: 6 };
  expect(send('five', 1, { beyondElsewhere: [many] })?.left).toBe(Math.floor((150 - 4) / 7));
});

describe('levels', () => {
  const clock = { ms: 60_000, now: () => clock.ms };
  const levelOf = createLevels(clock);
  const wants = (name: string, count: number): number =>
    Array.from({ length: count }, () => levelOf('a group', name, 100)).at(-1) as number;

  it('are all that there is for one alone, and where all find room', () => {
    expect(wants('large', 500)).toBe(100);
    clock.ms += 2_500;
    expect(wants('large', 25)).toBe(100);
    clock.ms += 2_500;
    expect([wants('large', 25), wants('small', 25)]).toEqual([100, 100]);
  });

  it('follow what there is, also within the time that captures are counted over', () => {
    clock.ms += 10_000;
    expect([0, 100].map((capacity) => levelOf('another', 'large', capacity))).toEqual([0, 100]);
  });

  it('are what the others leave for the largest, with room for their deviation, and are forgotten after five seconds', () => {
    clock.ms += 10_000;
    wants('large', 500);
    wants('small', 40);
    clock.ms += 2_500;
    expect([wants('large', 1), wants('small', 1)]).toEqual([80, 80]);
    clock.ms += 5_000;
    expect(wants('large', 1)).toBe(100);
    clock.ms -= 60_000;
    expect(wants('large', 1)).toBe(100);
  });
});

it('what a partner wants follows what it has sent on average, and never is nothing', () => {
  const clock = { ms: 60_000, now: () => clock.ms };
  const demand = createDemand(clock);
  expect(demand.of('anna')).toBeCloseTo(0.1);
  for (let nth = 0; nth < 20 * 60; nth += 1) {
    clock.ms += 50;
    demand.count('anna');
  }
  expect(demand.of('anna')).toBeGreaterThan(20);
  expect(demand.of('anna')).toBeLessThan(21);
  clock.ms += 5_000;
  expect(demand.of('anna')).toBeCloseTo(0.1 + 20 / Math.E, 0);
  clock.ms += 3_600_000;
  expect(demand.of('anna')).toBeCloseTo(0.1);
});
