import { LRUCache } from 'lru-cache';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock.ts';
import type { SharedNotes } from '../../platform/kept-out-exchange.ts';
import type { RateLimiter, Verdict } from '../../platform/rate-limit.ts';
import { SECOND } from './count-by-second.ts';
import { createDemandElsewhere } from './demand-elsewhere.ts';
import {
  createNetworkDemands,
  type NetworkDemand,
  type NetworkRates,
  type Shortage,
} from './network-demand.ts';
import { createPartnerLevels } from './partner-levels.ts';

/** Rates whose rejections are remembered: a tracker rejects only what is beyond its own. */
const RATES = 1_000;
/** The name of the service's rate beside trackers' ids. */
const SERVICE = 'service';

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
 * Each process counts for itself, and has its part of what a network has first, because a balancer sends some of every network's
 * visitors to each. Where one process rejects first captures, it tells the rest how many it has, because a balancer may also tell
 * visitors apart (docs/adr/0034).
 */
export const createNetworkShares = (
  rates: NetworkRates,
  limiter: RateLimiter,
  clock: Clock,
  shared: SharedNotes | null,
  processes: () => number,
) => {
  const elsewhere = createDemandElsewhere(clock, shared);
  const demands = createNetworkDemands(rates, clock, processes);
  const levelOfPartner = createPartnerLevels(clock, processes);
  const rejections = createRejections(clock);

  const admitUpTo = (name: string, ceiling: number): Verdict | Promise<Verdict> =>
    ceiling < 1 ? { retryMs: SECOND } : limiter.admit(name, ceiling);
  const admitBeyond = async (
    network: string,
    { partnerId, trackerId }: SharedRates,
    { left, leftThere, leftForNetwork, leftForNetworkThere }: NetworkDemand,
  ): Promise<Verdict> => {
    const refusedThere =
      (await admitUpTo(`captures of ${trackerId} from ${network}`, leftForNetworkThere)) ??
      (await admitUpTo(`captures beyond, of ${trackerId}`, leftThere));
    if (refusedThere !== null) return refusedThere;
    demands.countAtService(network, false);
    const ofPartner = levelOfPartner(network, partnerId, Math.min(left, leftForNetwork));
    return (
      (await admitUpTo(`captures from ${network} for ${partnerId}`, ofPartner)) ??
      (await admitUpTo(`captures from ${network}`, leftForNetwork)) ??
      admitUpTo('captures beyond', left)
    );
  };

  const shortage = (rate: string, network: string): Shortage => {
    const wanted = elsewhere.wanted(rate);
    return { elsewhere: wanted, isShort: wanted > 0 || rejections.ofOthers(rate, network) };
  };
  const noteFirst = (rate: string, network: string, verdict: Verdict): void => {
    elsewhere.count(rate, verdict !== null);
    if (verdict !== null) rejections.note(rate, network);
  };

  return async (network: string, capture: SharedRates): Promise<Verdict> => {
    const { trackerId } = capture;
    const demand = demands.of(network, trackerId, shortage(SERVICE, network), shortage(trackerId, network));
    const beyond = demand.isFirst ? null : await admitBeyond(network, capture, demand);
    if (beyond !== null) return beyond;
    const there = await capture.admitThere();
    if (demand.isFirst) noteFirst(trackerId, network, there);
    if (there !== null) return there;
    if (demand.isFirst) demands.countAtService(network, true);
    const verdict = await capture.admitAtService(demand);
    if (demand.isFirst) noteFirst(SERVICE, network, verdict);
    return verdict;
  };
};
