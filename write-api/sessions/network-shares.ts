import { LRUCache } from 'lru-cache';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock.ts';
import type { SharedNotes } from '../../platform/kept-out-exchange.ts';
import { createLocalLimiter } from '../../platform/local-limiter.ts';
import type { Verdict } from '../../platform/rate-limit.ts';
import { SECOND } from './count-by-second.ts';
import { createDemandElsewhere } from './demand-elsewhere.ts';
import { createLevels } from './levels.ts';
import {
  createNetworkDemands,
  type NetworkDemand,
  type NetworkRates,
  type Others,
} from './network-demand.ts';

/** Rates whose rejections are remembered: a tracker rejects only what is beyond its own. */
const RATES = 1_000;
/** The group of all networks, and the name of the service's rate beside trackers' ids. */
const ALL = '';

/** Remembers when first captures were rejected last for a rate. */
const createRejections = (clock: Clock) => {
  const lasts = new LRUCache<string, { network: string; at: number; otherAt: number }>({ max: RATES });
  const othersAt = (rate: string, network: string): number => {
    const last = lasts.get(rate);
    if (last === undefined) return Number.NEGATIVE_INFINITY;
    return last.network === network ? last.otherAt : last.at;
  };
  return {
    note: (rate: string, network: string): void => {
      lasts.set(rate, { network, at: clock.now(), otherAt: othersAt(rate, network) });
    },
    /** Whether some of other networks were within a minute. */
    ofOthers: (rate: string, network: string): boolean =>
      Math.abs(clock.now() - othersAt(rate, network)) < MINUTE,
  };
};

/** Spends what this process has for captures beyond the first. */
const createBeyond = (clock: Clock) => {
  const levelOf = createLevels(clock);
  const own = createLocalLimiter(clock);
  const admitUpTo = (name: string, ceiling: number): Verdict =>
    ceiling < 1 ? { retryMs: SECOND } : own.admit(name, ceiling);
  return {
    admitThere: (network: string, trackerId: string, { leftThere }: NetworkDemand): Verdict =>
      admitUpTo(`${trackerId} from ${network}`, levelOf(trackerId, network, leftThere)) ??
      admitUpTo(trackerId, leftThere),
    admitAtService: (network: string, partnerId: string, { left }: NetworkDemand): Verdict => {
      const ofNetwork = levelOf(ALL, network, left);
      const ofPartner = levelOf(network, partnerId, ofNetwork);
      return (
        admitUpTo(`${network} for ${partnerId}`, ofPartner) ??
        admitUpTo(network, ofNetwork) ??
        admitUpTo(ALL, left)
      );
    },
  };
};

/** A capture, and what spends the rates that all share. */
export interface SharedRates {
  readonly partnerId: string;
  readonly trackerId: string;
  admitThere(): Verdict | Promise<Verdict>;
  admitAtService(demand: NetworkDemand): Promise<Verdict>;
}

/**
 * Shares the rates that captures of all visitors use among networks. The first captures of each in a second, as many as one visitor
 * may have, come before all others: those have what the first ones leave of the service's rate and of the tracker's, less some
 * room for a minute after first ones were rejected. Where networks want more than there is, those with many have equal parts.
 *
 * Processes tell each other each second how many they have, of first ones and of those beyond, and so of trackers that reject first
 * ones or have many beyond: a balancer may send some of every network's visitors to each, or tell visitors apart, or use one of them
 * alone. Each has its part of what there is beyond, by what the others have (docs/adr/0034).
 */
export const createNetworkShares = (
  rates: NetworkRates,
  clock: Clock,
  notes: SharedNotes | null,
  processes: () => number,
) => {
  const trackerFrom = rates.CAPTURES_PER_SECOND_PER_TRACKER / 4;
  const elsewhere = createDemandElsewhere(clock, { notes, trackerFrom, processes });
  const demands = createNetworkDemands(rates, clock, elsewhere.sharing);
  const beyond = createBeyond(clock);
  const rejections = createRejections(clock);

  const admitBeyond = (
    network: string,
    { partnerId, trackerId }: SharedRates,
    demand: NetworkDemand,
  ): Verdict => {
    elsewhere.countBeyond(trackerId, network);
    const there = beyond.admitThere(network, trackerId, demand);
    if (there !== null) return there;
    elsewhere.countBeyond(null, network);
    return beyond.admitAtService(network, partnerId, demand);
  };

  const othersOf = (trackerId: string | null, network: string): Others => {
    const { isShort, ...counts } = elsewhere.of(trackerId);
    return { ...counts, areShort: isShort || rejections.ofOthers(trackerId ?? ALL, network) };
  };
  /** Whether first ones find room because others are refused: nothing is rejected then, and the next would be if that ended. */
  const isRoomUsed = (trackerId: string | null, network: string): boolean =>
    rejections.ofOthers(trackerId ?? ALL, network) &&
    elsewhere.inAll(trackerId) >
      (trackerId === null ? rates.CAPTURES_PER_SECOND : rates.CAPTURES_PER_SECOND_PER_TRACKER);

  const noteFirst = (
    trackerId: string | null,
    network: string,
    { isOfBurst }: NetworkDemand,
    verdict: Verdict,
  ): void => {
    const isShort = verdict !== null || isRoomUsed(trackerId, network);
    elsewhere.countFirst(trackerId, { isOfBurst, isShort });
    if (isShort) rejections.note(trackerId ?? ALL, network);
  };

  return async (network: string, capture: SharedRates): Promise<Verdict> => {
    const { trackerId } = capture;
    const demand = demands.of(network, trackerId, othersOf(null, network), othersOf(trackerId, network));
    const refused = demand.isFirst ? null : admitBeyond(network, capture, demand);
    if (refused !== null) return refused;
    const there = await capture.admitThere();
    if (demand.isFirst) noteFirst(trackerId, network, demand, there);
    if (there !== null) return there;
    if (demand.isFirst) demands.countFirst(network, demand);
    const verdict = await capture.admitAtService(demand);
    if (demand.isFirst) noteFirst(null, network, demand, verdict);
    return verdict;
  };
};
