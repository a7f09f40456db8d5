import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createLocalLimiter } from '../../platform/local-limiter.ts';
import { createCaptureRates, createSessionsOfNetworks } from '../../write-api/sessions/capture-rates.ts';
import { createRandom } from '../storm/random.ts';
import { sharedInMemory, USUAL_RATES as USUAL } from '../support/capture-cells.ts';

const RATES = {
  CAPTURES_PER_SECOND: 20,
  CAPTURES_PER_SECOND_PER_TRACKER: 10,
  CAPTURES_PER_SECOND_PER_VISITOR: 5,
};

interface Visits {
  /** In a part of each period, milliseconds; default: all the time. */
  readonly every?: number;
  readonly from?: number;
  readonly to?: number;
  readonly of: string;
  readonly tracker?: string;
  /** Each partner has visitors of its own network, unless it is given. */
  readonly network?: string;
  readonly perSecond: number;
}

/** Captures evenly over each second; returns the admitted captures of the last `counted` seconds, by partner and network. */
const admittedOf = async (all: readonly Visits[], seconds: number, counted = 1, rates = RATES) => {
  const clock = { ms: 60_000, now: () => clock.ms };
  const admit = createCaptureRates(rates, createLocalLimiter(clock), clock, null);
  const admitted: Record<string, number> = {};
  for (let ms = 1; ms <= seconds * 1_000; ms += 1) {
    clock.ms += 1;
    for (const { of, tracker = '1', network = of, perSecond, every = 1_000, from = 0, to = every } of all) {
      if (ms % (1_000 / perSecond) !== 0 || ms % every < from || ms % every >= to) continue;
      const verdict = await admit({ tracker_id: `${of} ${tracker}`, partner_id: of }, network);
      if (verdict !== null || ms <= (seconds - counted) * 1_000) continue;
      const name = network === of ? of : `${of} from ${network}`;
      admitted[name] = (admitted[name] ?? 0) + 1;
    }
  }
  return admitted;
};

it("admits a partner's captures while another partner's trackers exceed the total rate", async () => {
  const many = ['1', '2'].flatMap((tracker) =>
    // Of more networks than the part of one allows for.
    Array.from({ length: 5 }, (_, nth) => ({ of: 'anna', tracker, network: `${nth}`, perSecond: 20 })),
  );
  expect(await admittedOf([...many, { of: 'ben', perSecond: 5 }], 10)).toMatchObject({ ben: 5 });
});

it('lets the trackers of one partner, and one network, use the total rate while no other is refused', async () => {
  const both = ['1', '2'].map((tracker) => ({ of: 'anna', tracker, perSecond: 100 }));
  expect(await admittedOf(both, 10)).toEqual({ anna: 20 });
});

const PARTNERS = Array.from({ length: 10 }, (_, nth) => `partner ${nth}`);
const attack = PARTNERS.map((of) => ({ of, network: 'one', perSecond: 5 }));

it('admits visitors of other networks while one network sends captures to the trackers of many partners', async () => {
  const honest = PARTNERS.map((of) => ({ of, perSecond: 1 }));
  const beside = { of: 'not attacked', perSecond: 5 };
  const seconds = 240;
  // After the first minute no partner was refused lately, so that each has what it wants.
  const admitted = await admittedOf([...attack, ...honest, beside], seconds, seconds - 65);
  for (const { of, perSecond } of [...honest, beside])
    expect(admitted).toHaveProperty([of], perSecond * (seconds - 65));
});

it('admits a partner with many visitors between bursts of one network, which others are refused in', async () => {
  const honest = PARTNERS.map((of) => ({ of, perSecond: 1 }));
  const busy = ['a', 'b', 'c', 'd'].map((network) => ({ of: 'busy', network, perSecond: 2 }));
  const bursts = PARTNERS.map((of) => ({ of, network: 'one', perSecond: 10, every: 60_000, to: 1_000 }));
  // Until a second before the next burst.
  const admitted = await admittedOf([...bursts, ...honest, ...busy], 119, 58);
  for (const { network } of busy) expect(admitted[`busy from ${network}`]).toBe(2 * 58);
});

it('forgets soon what partners lacked for a network that was alone', async () => {
  const bursts = PARTNERS.map((of) => ({ of, network: 'one', perSecond: 50, every: 60_000, to: 1_000 }));
  const some = ['a', 'b', 'c', 'd'].map((network) => ({ of: 'busy', network, perSecond: 2 }));
  const busy = some.map((visits) => ({ ...visits, every: 60_000, from: 10_000 }));
  const admitted = await admittedOf([...bursts, ...busy], 59, 49);
  for (const { network } of busy) expect(admitted[`busy from ${network}`]).toBe(2 * 49);
});

const sum = (admitted: Readonly<Record<string, number>>, of: string): number =>
  Object.entries(admitted).reduce((all, [name, count]) => (name.startsWith(of) ? all + count : all), 0);
/** Each of a network of its own, and at another moment of the second. */
const visitorsOf = (of: string, count: number, perSecond: number): Visits[] =>
  Array.from({ length: count }, (_, nth) => {
    const every = 1_000 / perSecond;
    const from = (nth * 17) % every;
    return { of, network: `${of} ${nth}`, perSecond: 1_000, every, from, to: from + 1 };
  });

it('leaves room for others beside networks that flood in turn', async () => {
  const turns = ['one', 'two'].flatMap((network, nth) =>
    Array.from({ length: 45 }, (_, partner) => ({
      of: `attacked ${partner}`,
      network,
      perSecond: 10,
      every: 22_000,
      from: nth * 11_000,
      to: (nth + 1) * 11_000,
    })),
  );
  const busy = visitorsOf('busy', 30, 2);
  const admitted = await admittedOf([...turns, ...busy], 66, 44, USUAL);
  expect(sum(admitted, 'busy')).toBeGreaterThan(0.95 * 30 * 2 * 44);
});

/** 110 captures at a time. */
const bursts = { network: 'one', perSecond: 1_000, every: 2_100, from: 1_200, to: 1_310 };
/** A visit each 700 ms, one of every three just after a burst. */
const visits = { perSecond: 1_000, every: 700, from: 0, to: 1 };

it('does not shut out the visitors of a quiet service in each of the bursts of a network', async () => {
  const ofOthers = ['a', 'b'].map((of) => ({ of, ...bursts }));
  const admitted = await admittedOf([...ofOthers, { of: 'quiet', ...visits }], 105, 100, USUAL);
  expect(admitted.quiet).toBeGreaterThan(0.95 * (100_000 / 700));
});

it('does not shut out the visitors of a tracker in each of the bursts of a network', async () => {
  const quiet = { of: 'anna', network: 'two', ...visits };
  const admitted = await admittedOf([{ of: 'anna', ...bursts }, quiet], 105, 100, USUAL);
  expect(sum(admitted, 'anna from two')).toBeGreaterThan(0.95 * (100_000 / 700));
});

it('keeps little for a partner whose visitors came in a moment and found no room', async () => {
  const busy = visitorsOf('busy', 150, 1).map((one, nth) => ({ ...one, tracker: `${nth % 2}` }));
  const once = visitorsOf('once', 60, 1).map((one) => ({
    ...one,
    every: 1_000_000,
    from: 20_700,
    to: 20_701,
  }));
  const admitted = await admittedOf([...busy, ...once], 60, 30, USUAL);
  expect(sum(admitted, 'busy')).toBe(150 * 30);
});

it.each([
  ['', 0],
  [', of which a visit comes each second afterwards', 1],
])(
  'admits a partner with many visitors between bursts of a few small networks to others%s',
  async (_, perSecond) => {
    const bursts = attacked.map((of, nth) => ({
      of,
      network: `flood ${nth % 6}`,
      perSecond: 10,
      every: 55_000,
      to: 2_500,
    }));
    const kept = perSecond === 0 ? [] : attacked.map((of) => ({ of, network: 'flood 0', perSecond }));
    const busy = visitorsOf('busy', 100, 0.2);
    // Eight rounds of all visitors, from ten seconds after the second burst on.
    const admitted = await admittedOf([...bursts, ...kept, ...busy], 109, 42, USUAL);
    expect(sum(admitted, 'busy')).toBe(8 * 100);
  },
);

it('keeps room for a partner that was refused and has visitors now and then', async () => {
  const all = Array.from({ length: 30 }, (_, nth) => ({
    of: 'anna',
    tracker: `${nth % 3}`,
    network: `${nth}`,
    perSecond: 10,
  }));
  const rare = { of: 'rare', perSecond: 1_000, every: 7_000, from: 6_500, to: 6_501 };
  const admitted = await admittedOf([...all, rare], 63, 49, USUAL);
  expect(admitted.rare).toBeGreaterThanOrEqual(6);
});

const attacked = Array.from({ length: 40 }, (_, nth) => `attacked ${nth}`);
const busyVisits = visitorsOf('busy', 20, 1);

it('admits all visits of a partner while six networks send twice the rate to the trackers of others', async () => {
  const flood = attacked.map((of, nth) => ({ of, network: `flood ${nth % 6}`, perSecond: 10 }));
  const admitted = await admittedOf([...flood, ...busyVisits], 40, 30, USUAL);
  expect(sum(admitted, 'busy')).toBe(20 * 30);
});

it('admits all visits to a tracker while six networks send more than its rate', async () => {
  const flood = Array.from({ length: 6 }, (_, nth) => ({
    of: 'busy',
    network: `flood ${nth}`,
    perSecond: 50,
  }));
  const admitted = await admittedOf([...flood, ...busyVisits], 40, 30, USUAL);
  expect(sum(admitted, 'busy from busy')).toBe(20 * 30);
});

it('admits visits to a tracker while one network sends more than its rate, and more to others', async () => {
  const flood = ['busy', 'anna', 'ben'].map((of) => ({ of, network: 'flood', perSecond: 250 }));
  const admitted = await admittedOf([...flood, ...visitorsOf('busy', 60, 1)], 20, 10, USUAL);
  expect(sum(admitted, 'busy from busy')).toBeGreaterThan(0.95 * 600);
});

it('keeps no room for what a network sends beyond its first captures', async () => {
  const flood = { of: 'ben', network: 'flood', perSecond: 100 };
  const busy = ['1', '2', '3', '4'].flatMap((tracker) =>
    Array.from({ length: 50 }, (_, nth) => {
      const from = nth * 20 + Number(tracker);
      return { of: 'busy', tracker, network: `${nth}`, perSecond: 1_000, every: 1_000, from, to: from + 1 };
    }),
  );
  const admitted = await admittedOf([flood, ...busy], 40, 20, USUAL);
  expect(sum(admitted, 'busy')).toBeGreaterThan(0.85 * 200 * 20);
});

it('keeps room for a partner beside another where one network sends all', async () => {
  const busy = ['1', '2', '3', '4'].map((tracker) => ({
    of: 'busy',
    tracker,
    network: 'one',
    perSecond: 100,
  }));
  const quiet = { of: 'quiet', network: 'one', perSecond: 10 };
  const admitted = await admittedOf([...busy, quiet], 30, 20, USUAL);
  expect(sum(admitted, 'quiet')).toBeGreaterThan(0.95 * 10 * 20);
  expect(sum(admitted, 'busy')).toBeGreaterThan(0.85 * 190 * 20);
});

it('refuses the partner with most visitors little more than there is too little', async () => {
  const clock = { ms: 60_000, now: () => clock.ms };
  const admit = createCaptureRates(USUAL, createLocalLimiter(clock), clock, null);
  // Of a linear congruential generator: visits come at any moment.
  let seed = 1;
  const isNow = (perSecond: number): boolean => {
    seed = (seed * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return seed / 2 ** 32 < perSecond / 1_000;
  };
  const tally: Record<string, { sent: number; admitted: number }> = {};
  const visit = async (of: string, perSecond: number, network: string): Promise<void> => {
    if (!isNow(perSecond)) return;
    const verdict = await admit({ tracker_id: of, partner_id: of }, network);
    const { sent, admitted } = tally[of] ?? { sent: 0, admitted: 0 };
    tally[of] = { sent: sent + 1, admitted: admitted + (verdict === null ? 1 : 0) };
  };
  for (let ms = 1; ms <= 120_000; ms += 1) {
    clock.ms += 1;
    await visit('large', 60, `large ${ms}`);
    for (let nth = 0; nth < 10; nth += 1) await visit(`small ${nth}`, 13.5, `small ${nth} ${ms}`);
  }
  const part = (of: string): number => (tally[of]?.admitted ?? 0) / (tally[of]?.sent ?? 0);
  expect(part('large')).toBeGreaterThan(0.75);
  expect(part('small 0')).toBeGreaterThan(0.97);
});

it('admits visits that come in bursts beside a network that floods the trackers of others', async () => {
  const flood = ['anna', 'ben', 'cleo'].map((of) => ({ of, network: 'flood', perSecond: 200 }));
  const every = 3_000;
  const bursts = Array.from({ length: 72 }, (_, nth) => {
    const from = nth * 5;
    return { of: 'busy', network: `visitor ${nth}`, perSecond: 1_000, every, from, to: from + 1 };
  });
  const steady = visitorsOf('steady', 20, 1);
  const admitted = await admittedOf([...flood, ...steady, ...bursts], 60, 48, USUAL);
  expect(sum(admitted, 'busy')).toBeGreaterThan(0.93 * 72 * 16);
});

it('admits a partner with many visitors beside others to which few networks keep coming after a burst', async () => {
  const named = Array.from({ length: 100 }, (_, nth) => ({
    of: `named ${nth}`,
    network: `flood ${nth % 6}`,
  }));
  const bursts = named.map((one) => ({ ...one, perSecond: 5, every: 60_000, to: 2_000 }));
  const kept = named.map((one, nth) => {
    const from = nth * 20;
    return { ...one, perSecond: 1_000, every: 2_000, from, to: from + 1 };
  });
  const admitted = await admittedOf([...bursts, ...kept, ...busyVisits], 110, 45, USUAL);
  expect(sum(admitted, 'busy')).toBe(20 * 45);
});

it('lets a network have the rates of two trackers, whatever one of them refuses', async () => {
  const all = { network: 'one', perSecond: 1_000, every: 1_000, from: 0 };
  const bursts = [
    { ...all, of: 'anna', to: 300 },
    { ...all, of: 'ben', from: 300, to: 400 },
  ];
  const other = { of: 'cleo', network: 'two', perSecond: 1 };
  const admitted = await admittedOf([...bursts, other], 10, 1, USUAL);
  expect(sum(admitted, 'anna') + sum(admitted, 'ben')).toBeGreaterThan(170);
});

it('counts captures that their tracker refuses for no rate of others', async () => {
  const spot = visitorsOf('spot', 300, 1);
  const large = { of: 'large', perSecond: 50 };
  const admitted = await admittedOf([...spot, large], 20, 10, USUAL);
  expect(admitted.large).toBeGreaterThan(0.95 * 500);
});

it('admits what a large network has at a tracker, also beside one that has more than there is', async () => {
  const flood = { of: 'anna', network: 'flood', perSecond: 250 };
  const large = { of: 'anna', network: 'large', perSecond: 40 };
  const admitted = await admittedOf([flood, large], 20, 10, USUAL);
  expect(sum(admitted, 'anna from large')).toBeGreaterThan(0.95 * 400);
});

it('admits what comes from a large network at random, also beside one that has more than the rate of the tracker', async () => {
  const clock = { ms: 60_000, now: () => clock.ms };
  const admit = createCaptureRates(USUAL, createLocalLimiter(clock), clock, null);
  const random = createRandom(1);
  let sent = 0;
  let admitted = 0;
  for (let ms = 0; ms < 30_000; ms += 1) {
    clock.ms += 1;
    if (random.chance(0.3)) await admit({ tracker_id: 'site', partner_id: 'site' }, 'flood');
    if (!random.chance(0.04)) continue;
    const verdict = await admit({ tracker_id: 'site', partner_id: 'site' }, 'large');
    if (ms < 5_000) continue;
    sent += 1;
    if (verdict === null) admitted += 1;
  }
  expect(admitted).toBeGreaterThan(0.92 * sent);
});

it('keeps no room for what few networks send in a moment now and then', async () => {
  const large = [50, 25].map((perSecond) => ({ of: 'site', network: 'large', perSecond }));
  const pulses = Array.from({ length: 6 }, (_, nth) => ({
    of: 'site',
    network: `pulse ${nth}`,
    perSecond: 50,
    every: 29_000,
    from: 5_000,
    to: 5_200,
  }));
  const admitted = await admittedOf([...large, ...pulses], 65, 60, USUAL);
  expect(sum(admitted, 'site from large')).toBeGreaterThan(0.9 * 75 * 60);
});

it('admits what a large network has, also beside one that has more than there is', async () => {
  const large = { of: 'large', perSecond: 50 };
  const others = visitorsOf('others', 60, 1);
  expect(await admittedOf([large, ...others], 20, 10, USUAL)).toMatchObject({ large: 500 });
  const flood = attacked.slice(0, 10).map((of) => ({ of, network: 'flood', perSecond: 50 }));
  const admitted = await admittedOf([large, ...others, ...flood], 20, 10, USUAL);
  expect(admitted.large).toBeGreaterThan(0.95 * 500);
  expect(sum(admitted, 'others')).toBe(600);
});

it('leaves room for other networks before a burst of one has them rejected', async () => {
  const once = { perSecond: 1_000, every: 2_000 };
  const some = PARTNERS.slice(0, 5);
  const honest = some.flatMap((of) => [
    { of, ...once, to: 1 },
    { of, ...once, from: 1_400, to: 1_401 },
  ]);
  const bursts = PARTNERS.map((of) => ({
    of,
    network: 'one',
    perSecond: 50,
    every: 4_000,
    from: 1_300,
    to: 1_400,
  }));
  const admitted = await admittedOf([...bursts, ...honest], 60, 40);
  for (const of of some) expect(admitted).toHaveProperty([of], 40);
});

it("admits the visitors of other networks to a tracker whose rate one network's captures exceed", async () => {
  const flood = { of: 'anna', network: 'one', perSecond: 50 };
  expect(await admittedOf([flood, { of: 'anna', network: 'two', perSecond: 2 }], 10)).toMatchObject({
    'anna from two': 2,
  });
});

it('leaves room for visitors whom a balancer sends to another process than the network that floods', async () => {
  const clock = { ms: 60_000, now: () => clock.ms };
  const monotonic = vi.spyOn(performance, 'now').mockImplementation(clock.now);
  const limiter = createLocalLimiter(clock);
  const shared = { partners: sharedInMemory(), networks: sharedInMemory() };
  const [flooded, quiet] = [1, 2].map(() => createCaptureRates(USUAL, limiter, clock, shared, () => 2)) as [
    ReturnType<typeof createCaptureRates>,
    ReturnType<typeof createCaptureRates>,
  ];
  const trackerOf = (nth: number) => ({
    tracker_id: `tracker ${nth % 20}`,
    partner_id: `partner ${nth % 20}`,
  });
  let admitted = 0;
  for (let nth = 0; nth < 59 * 300; nth += 1) {
    clock.ms += 10 / 3;
    await flooded(trackerOf(nth), 'one');
    if (nth % 5 === 0 && (await quiet(trackerOf(nth / 5), `visitor ${nth}`)) === null) admitted += 1;
  }
  monotonic.mockRestore();
  expect(admitted).toBeGreaterThan(0.95 * 59 * 60);
});

describe('partners whose visitors a balancer sends to processes of their own', () => {
  const clock = { ms: 0, now: () => clock.ms };
  let processes: ReturnType<typeof createCaptureRates>[];
  const start = (count: number) => {
    const limiter = createLocalLimiter(clock);
    const shared = { partners: sharedInMemory(), networks: sharedInMemory() };
    return Array.from({ length: count }, () =>
      createCaptureRates(USUAL, limiter, clock, shared, () => count),
    );
  };
  beforeEach(() => {
    clock.ms = 60_000;
    vi.spyOn(performance, 'now').mockImplementation(clock.now);
    processes = start(2);
  });
  afterEach(() => void vi.restoreAllMocks());

  /** 20 captures a second, of ever new visitors, at the second process. @returns how many of the last `seconds` are admitted */
  const quiet = async (seconds: number, meanwhile: (ms: number) => Promise<void>): Promise<number> => {
    let admitted = 0;
    for (let ms = 0; ms < seconds * 1_000; ms += 1) {
      clock.ms += 1;
      await meanwhile(ms);
      if (ms % 50 !== 0) continue;
      const verdict = await processes[1]?.({ tracker_id: 'quiet', partner_id: 'quiet' }, `visitor ${ms}`);
      if (verdict === null) admitted += 1;
    }
    return admitted;
  };

  const busy = async (ms: number): Promise<void> => {
    if (ms % 5 !== 0) return;
    for (let nth = 0; nth < 2; nth += 1) {
      const tracker = { tracker_id: `busy ${(ms / 5) % 10}`, partner_id: 'busy' };
      await processes[0]?.(tracker, `network ${(ms / 5 + 100 * nth) % 200}`);
    }
  };

  it('keep their room beside a busy one at another process', async () => {
    await quiet(5, busy);
    expect(await quiet(15, busy)).toBeGreaterThan(0.95 * 20 * 15);
  });

  /** 80 visits a second of 80 networks, and 50 of a large one, at the first process. @returns how many of the large one are admitted */
  const large = async (seconds: number, meanwhile: (ms: number) => Promise<void>): Promise<number> => {
    let admitted = 0;
    for (let ms = 0; ms < seconds * 1_000; ms += 1) {
      clock.ms += 1;
      await meanwhile(ms);
      if (ms % 25 === 0)
        await processes[0]?.({ tracker_id: 'site', partner_id: 'site' }, `visitor ${(ms / 25) % 80}`);
      if (ms % 20 !== 7) continue;
      const verdict = await processes[0]?.({ tracker_id: 'of many', partner_id: 'of many' }, 'large');
      if (verdict === null) admitted += 1;
    }
    return admitted;
  };

  it('a large network has its part where a balancer uses one process alone', async () => {
    expect(await large(20, async () => undefined)).toBeGreaterThan(0.95 * 50 * 20);
  });

  it('a large network has its part beside one that floods trackers at another process', async () => {
    const flood = async (ms: number): Promise<void> => {
      if (ms % 10 > 2) return;
      const tracker = `attacked ${ms % 3}`;
      await processes[1]?.({ tracker_id: tracker, partner_id: tracker }, 'flood');
    };
    await large(5, flood);
    expect(await large(20, flood)).toBeGreaterThan(0.9 * 50 * 20);
  });

  it('have their bursts of visits beside a network that floods trackers at another process', async () => {
    const [flooded, other] = processes as [(typeof processes)[0], (typeof processes)[0]];
    let admitted = 0;
    for (let ms = 0; ms < 30_000; ms += 1) {
      clock.ms += 1;
      const attacked = { tracker_id: `attacked ${ms % 3}`, partner_id: `attacked ${ms % 3}` };
      if (ms % 2 === 0) await flooded(attacked, 'flood');
      const isBurst = ms % 10_000 < 1_000;
      if (ms % (isBurst ? 14 : 100) !== 0) continue;
      const isAdmitted = (await other({ tracker_id: 'site', partner_id: 'site' }, `visitor ${ms}`)) === null;
      // The first burst shows how many there are.
      if (ms > 10_000 && isBurst && isAdmitted) admitted += 1;
    }
    expect(admitted).toBeGreaterThan(0.9 * 2 * 71);
  });

  /** Calls both each millisecond; null: no visit. @returns how many visits are admitted after five of twenty seconds */
  const visitsBeside = async (
    flood: (ms: number) => Promise<unknown>,
    visit: (ms: number) => Promise<unknown> | null,
  ): Promise<number> => {
    let admitted = 0;
    for (let ms = 0; ms < 20_000; ms += 1) {
      clock.ms += 1;
      await flood(ms);
      const verdict = visit(ms);
      if (verdict !== null && (await verdict) === null && ms >= 5_000) admitted += 1;
    }
    return admitted;
  };

  it('have what networks at one of them want beside one that floods at another', async () => {
    const [several, flooded] = processes as [(typeof processes)[0], (typeof processes)[0]];
    const admitted = await visitsBeside(
      async (ms) =>
        ms % 10 < 3 && flooded({ tracker_id: `attacked ${ms % 3}`, partner_id: 'attacked' }, 'flood'),
      (ms) => {
        const nth = (ms / 7) % 4;
        const site = { tracker_id: `site ${nth}`, partner_id: `site ${nth}` };
        return ms % 7 === 0 ? several(site, `large ${nth}`) : null;
      },
    );
    expect(admitted).toBeGreaterThan(0.85 * (15_000 / 7));
  });

  it('have what a network wants beside one that floods at another, with some small ones', async () => {
    const [quiet, flooded] = processes as [(typeof processes)[0], (typeof processes)[0]];
    const admitted = await visitsBeside(
      async (ms) => {
        if (ms % 10 < 3) await flooded({ tracker_id: `attacked ${ms % 3}`, partner_id: 'attacked' }, 'flood');
        if (ms % 18 === 0) await flooded({ tracker_id: 'beside', partner_id: 'attacked' }, `small ${ms % 5}`);
      },
      (ms) => (ms % 16 === 0 ? quiet({ tracker_id: 'site', partner_id: 'site' }, 'large') : null),
    );
    expect(admitted).toBeGreaterThan(0.9 * (15_000 / 16));
  });

  it('have as many first captures of a network beside one that floods at another process', async () => {
    const [flooded, other] = start(4) as [(typeof processes)[0], (typeof processes)[0]];
    const admitted = await visitsBeside(
      (ms) => flooded({ tracker_id: `attacked ${ms % 3}`, partner_id: `attacked ${ms % 3}` }, 'flood'),
      (ms) => {
        const site = { tracker_id: `site ${ms % 3}`, partner_id: 'site' };
        return ms % 10 === 0 ? other(site, `network ${ms % 110}`) : null;
      },
    );
    expect(admitted).toBeGreaterThan(0.95 * 100 * 15);
  });

  it('have what partners that were named in a moment at several processes no longer want', async () => {
    const flood = async (ms: number): Promise<void> => {
      for (const [at, one] of processes.entries()) {
        const partner = `named ${(ms + 20 * at) % 40}`;
        await one({ tracker_id: partner, partner_id: partner }, `flood ${ms % 6}`);
      }
    };
    await quiet(3, flood);
    await quiet(8, async () => undefined);
    expect(await quiet(20, async () => undefined)).toBe(20 * 20);
  });
});

describe('where a balancer spreads captures over two processes', () => {
  const clock = { ms: 0, now: () => clock.ms };
  let spread: (partner: string, network: string) => Promise<boolean>;
  beforeEach(() => {
    clock.ms = 60_000;
    vi.spyOn(performance, 'now').mockImplementation(clock.now);
    const limiter = createLocalLimiter(clock);
    const shared = { partners: sharedInMemory(), networks: sharedInMemory() };
    const processes = [1, 2].map(() => createCaptureRates(USUAL, limiter, clock, shared, () => 2));
    let sent = 0;
    spread = async (partner, network) => {
      sent += 1;
      const admit = processes[Math.floor(sent / 7) % 2];
      return (await admit?.({ tracker_id: partner, partner_id: partner }, network)) === null;
    };
  });
  afterEach(() => void vi.restoreAllMocks());

  it('twelve networks do not take the rate with first captures at each', async () => {
    let admitted = 0;
    for (let ms = 0; ms < 40_000; ms += 1) {
      clock.ms += 1;
      if (ms % 2 === 0) await spread(`attacked ${ms % 45}`, `flood ${(ms / 2) % 12}`);
      if (ms % 50 === 0 && (await spread('quiet', `visitor ${ms}`)) && ms >= 20_000) admitted += 1;
    }
    expect(admitted).toBeGreaterThan(0.95 * 20 * 20);
  });

  it('visits that one tracker refuses do not have those of a large network to others refused', async () => {
    let admitted = 0;
    for (let ms = 0; ms < 30_000; ms += 1) {
      clock.ms += 1;
      if (ms % 10 < 2) await spread('busy', `visitor ${ms}`);
      if (ms % 20 === 10 && (await spread(`partner ${ms % 7}`, 'large')) && ms >= 10_000) admitted += 1;
    }
    expect(admitted).toBeGreaterThan(0.95 * 50 * 20);
  });

  it('a burst at one tracker does not have those of a large network refused for a minute', async () => {
    for (let nth = 0; nth < 600; nth += 1) await spread('attacked', `flood ${nth % 20}`);
    let admitted = 0;
    for (let ms = 0; ms < 30_000; ms += 1) {
      clock.ms += 1;
      if (ms % 20 === 0) await spread(`small ${(ms / 20) % 30}`, `visitor ${ms}`);
      if (ms % 20 === 10 && (await spread(`partner ${ms % 7}`, 'large')) && ms >= 10_000) admitted += 1;
    }
    expect(admitted).toBeGreaterThan(0.95 * 50 * 20);
  });
});

it('lets a network begin 10,000 sessions of a partner in a day where room is short', async () => {
  const clock = { ms: 60_000, now: () => clock.ms };
  const mayTakeRest = createSessionsOfNetworks(createLocalLimiter(clock));
  const allowed = async (partner: string, network: string, times: number): Promise<number> => {
    const all = await Promise.all(Array.from({ length: times }, () => mayTakeRest(partner, network)));
    return all.filter((may) => may).length;
  };
  expect(await allowed('anna', 'one', 10_100)).toBe(10_000);
  expect([await allowed('anna', 'two', 1), await allowed('ben', 'one', 1)]).toEqual([1, 1]);
  clock.ms += 86_400_000;
  expect(await allowed('anna', 'one', 1)).toBe(1);
});
