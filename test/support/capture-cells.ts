import type { SharedNotes } from '../../platform/kept-out-exchange.ts';
import { createLocalLimiter } from '../../platform/local-limiter.ts';
import { createCaptureRates } from '../../write-api/sessions/capture-rates.ts';
import { createRandom, type Random } from '../storm/random.ts';

export const USUAL_RATES = {
  CAPTURES_PER_SECOND: 200,
  CAPTURES_PER_SECOND_PER_TRACKER: 100,
  CAPTURES_PER_SECOND_PER_VISITOR: 10,
};

export const HONEST = ['visitors', 'bursts', 'a large network'] as const;
export type Kind = (typeof HONEST)[number] | 'a flood';

/** Where captures come from. */
interface Source {
  readonly kind: Kind;
  readonly trackers: readonly string[];
  readonly networks: number;
  readonly perSecond: number;
  /** Seconds. Default: all the time. */
  readonly bursts?: { readonly every: number; readonly width: number };
  /** Default: a balancer spreads its captures. */
  readonly process?: number;
}

/** Visits of several sites beside a flood from few networks, at one process or several. */
export interface Cell {
  readonly processes: number;
  readonly sources: readonly Source[];
}

const between = (random: Random, from: number, to: number): number => from + random.next() * (to - from);

const honestSource = (random: Random, kind: Kind, nth: number, left: number): Source => {
  const site = { kind, trackers: [`site ${nth}`], networks: kind === 'a large network' ? 1 : 5_000 };
  if (kind !== 'bursts') return { ...site, perSecond: between(random, 10, Math.min(left, 45)) };
  const bursts = { every: between(random, 4, 12), width: between(random, 0.2, 1) };
  return { ...site, perSecond: 60 / bursts.every, bursts };
};

/** Makes a cell of at most 110 honest captures a second and six networks that flood: all of the former could find room. */
export const makeCell = (seed: number): Cell => {
  const random = createRandom(seed);
  const processes = random.pick([1, 1, 2, 3]);
  const isPinned = processes > 1 && random.chance(0.4);
  const placed = () => (isPinned ? { process: Math.floor(random.next() * processes) } : {});
  const honest: Source[] = [];
  for (let left = 110; left > 20 && honest.length < 3; left -= 45)
    honest.push({ ...honestSource(random, random.pick(HONEST), honest.length, left), ...placed() });
  const others = Array.from({ length: random.pick([1, 3, 10, 40]) }, (_, nth) => `attacked ${nth}`);
  const flood: Source = {
    kind: 'a flood',
    // A large network has as much as each that floods its tracker, which may be little.
    trackers: honest[0]?.kind !== 'a large network' && random.chance(0.4) ? ['site 0'] : others,
    networks: random.pick([1, 1, 2, 4, 6]),
    perSecond: between(random, 50, 600),
    ...(random.chance(0.4)
      ? { bursts: { every: between(random, 1, 12), width: between(random, 0.2, 1) } }
      : {}),
    ...placed(),
  };
  return { processes, sources: [...honest, flood] };
};

interface Arrival {
  readonly ms: number;
  readonly kind: Kind;
  readonly tracker: string;
  readonly network: string;
  readonly process: number;
}

const arrivalsOf = (cell: Cell, seconds: number, random: Random): Arrival[] => {
  const all = cell.sources.flatMap(({ kind, trackers, networks, perSecond, bursts, process }, nth) =>
    Array.from({ length: Math.round(perSecond * seconds) }, (): Arrival => {
      const at = random.next() * seconds;
      const of = bursts ? Math.floor(at / bursts.every) * bursts.every + random.next() * bursts.width : at;
      return {
        ms: Math.floor(of * 1_000),
        kind,
        tracker: random.pick(trackers),
        network: `${kind} ${nth} ${Math.floor(random.next() * networks)}`,
        process: process ?? Math.floor(random.next() * cell.processes),
      };
    }),
  );
  return all.sort((one, other) => one.ms - other.ms);
};

/** Notes in memory, as several processes share them. */
export const sharedInMemory = (): SharedNotes => {
  const notes = new Map<string, { readonly at: number; readonly wanted: number }>();
  return {
    share: async (all) => {
      for (const { asker, ...note } of all) notes.set(asker, note);
    },
    refresh: async (since) =>
      [...notes].flatMap(([asker, note]) => (note.at > since ? [{ asker, ...note }] : [])),
  };
};

/**
 * Sends the captures of a cell to the rates of its processes, on a clock of its own; `performance.now` must follow it.
 * @returns how many of each kind were sent and refused after the first ten seconds, which show the processes what there is
 */
export const playCell = async (
  cell: Cell,
  clock: { ms: number; now(): number },
  seed: number,
  seconds = 24,
): Promise<Map<Kind, { sent: number; refused: number }>> => {
  const limiter = createLocalLimiter(clock);
  const shared = { partners: sharedInMemory(), networks: sharedInMemory() };
  const admits = Array.from({ length: cell.processes }, () =>
    createCaptureRates(USUAL_RATES, limiter, clock, shared, () => cell.processes),
  );
  const counts = new Map<Kind, { sent: number; refused: number }>();
  const begun = clock.ms;
  for (const { ms, kind, tracker, network, process } of arrivalsOf(cell, seconds, createRandom(seed))) {
    clock.ms = begun + ms;
    const verdict = await admits[process]?.({ tracker_id: tracker, partner_id: tracker }, network);
    if (ms < 10_000) continue;
    const count = counts.get(kind) ?? { sent: 0, refused: 0 };
    counts.set(kind, { sent: count.sent + 1, refused: count.refused + (verdict === null ? 0 : 1) });
  }
  return counts;
};
