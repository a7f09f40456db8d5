import { MINUTE } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock.ts';
import type { SharedNotes } from '../../platform/kept-out-exchange.ts';
import type { RateLimiter, Verdict } from '../../platform/rate-limit.ts';
import { SECOND } from './count-by-second.ts';
import { createDemandElsewhere } from './demand-elsewhere.ts';
import { createNetworkDemands, type NetworkDemand, type NetworkRates } from './network-demand.ts';

/** Remembers when first captures were rejected last. */
const createRejections = (clock: Clock) => {
  let last = { network: '', at: Number.NEGATIVE_INFINITY, otherAt: Number.NEGATIVE_INFINITY };
  const othersAt = (network: string): number => (last.network === network ? last.otherAt : last.at);
  return {
    note: (network: string): void => {
      last = { network, at: clock.now(), otherAt: othersAt(network) };
    },
    /** Whether some of other networks were within a minute. */
    ofOthers: (network: string): boolean => Math.abs(clock.now() - othersAt(network)) < MINUTE,
  };
};

/** Spends the shared rates. */
type Admit = (demand: NetworkDemand) => Promise<Verdict>;

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
  const rejections = createRejections(clock);

  const admitUpTo = (name: string, ceiling: number): Verdict | Promise<Verdict> =>
    ceiling < 1 ? { retryMs: SECOND } : limiter.admit(name, ceiling);
  const admitBeyond = async (network: string, trackerId: string, demand: NetworkDemand): Promise<Verdict> => {
    const refusedThere =
      (await admitUpTo(`captures of ${trackerId} from ${network}`, demand.leftForNetworkThere)) ??
      (await admitUpTo(`captures beyond, of ${trackerId}`, demand.leftThere));
    if (refusedThere !== null) return refusedThere;
    demands.countBeyond(network);
    return (
      (await admitUpTo(`captures from ${network}`, demand.leftForNetwork)) ??
      admitUpTo('captures beyond', demand.left)
    );
  };

  return async (network: string, trackerId: string, admit: Admit): Promise<Verdict> => {
    const more = elsewhere.wanted();
    const demand = demands.of(network, trackerId, more > 0 || rejections.ofOthers(network), more);
    const beyond = demand.isFirst ? null : await admitBeyond(network, trackerId, demand);
    if (beyond !== null) return beyond;
    const verdict = await admit(demand);
    if (!demand.isFirst) return verdict;
    elsewhere.count(verdict !== null);
    if (verdict !== null) rejections.note(network);
    return verdict;
  };
};
