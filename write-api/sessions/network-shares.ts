import { LRUCache } from 'lru-cache';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import { createKeptOut } from '../../platform/kept-out.ts';
import type { SharedNotes } from '../../platform/kept-out-exchange.ts';
import type { RateLimiter, Verdict } from '../../platform/rate-limit.ts';
import { SECOND } from './count-by-second.ts';
import { createDemandElsewhere } from './demand-elsewhere.ts';
import { createNetworkDemand, type NetworkDemand, type NetworkShare } from './network-demand.ts';

export type NetworkRates = Pick<
  Config,
  'CAPTURES_PER_SECOND' | 'CAPTURES_PER_SECOND_PER_TRACKER' | 'CAPTURES_PER_SECOND_PER_VISITOR'
>;

const HELD_MS = 10_000;
const NETWORKS = 10_000;
/** Stands among the rejected for as long as a network wants more than it may have after rejections. */
const PRESSED = '';
/** Fewer captures of others in a second are no reason to leave room for them before they are rejected, and are left it afterwards. */
const FEW = 5;
/** A rate that fluctuates, as visits do, needs more room than it had in a second. */
export const ROOM_TIMES = 2;

/** Spends the shared rates. */
type Admit = (share: NetworkShare) => Promise<Verdict>;

/** Returns what others leave of a rate. */
const leftBeside = (ofOthers: number, rate: number): number =>
  Math.max(rate / 2, rate - ROOM_TIMES * Math.max(FEW, ofOthers));

/**
 * Shares the rates that captures of all visitors use. A network may use all of them while it is alone.
 * - Beside others, a heavy one leaves them twice what they want, at most half of the rate.
 * - While captures from others are rejected, a heavy one has an equal part of a tracker's rate, at least the rate of a visitor. One
 *   that wants more than its part, where all want more than there is, keeps to it until it has wanted no more for ten seconds:
 *   otherwise it would shut out the others in every other second.
 * - For a minute after rejections, and for as long as one wants more, every network leaves room for others, at each tracker too:
 *   bursts with pauses would shut out others in every other burst.
 *
 * Each process counts for itself, because a balancer sends some of every network's visitors to each. Where one process rejects
 * others, it tells the rest what they want there, because a balancer may also tell visitors apart.
 */
export const createNetworkShares = (
  config: NetworkRates,
  limiter: RateLimiter,
  clock: Clock,
  shared: SharedNotes | null,
) => {
  const { CAPTURES_PER_SECOND: ofAll, CAPTURES_PER_SECOND_PER_TRACKER: ofTracker } = config;
  // A network has had it before it is limited.
  const ofVisitor = config.CAPTURES_PER_SECOND_PER_VISITOR;
  const keptOut = createKeptOut({ windowMs: SECOND, now: clock.now, shared: null });
  const keptOutLately = createKeptOut({ windowMs: MINUTE, now: clock.now, shared: null });
  const held = new LRUCache<string, { readonly part: number; readonly until: number }>({ max: NETWORKS });
  const elsewhere = createDemandElsewhere(clock, shared);
  const demandOf = createNetworkDemand(config, clock, elsewhere.wanted);

  const admitUpTo = (name: string, part: number): Verdict | Promise<Verdict> =>
    limiter.admit(name, Math.max(ofVisitor, Math.floor(part)));

  const partOf = (network: string, { share, ofOthers }: NetworkDemand, isLately: boolean): number => {
    const leavesRoom = isLately || (share === 'heavy' && ofOthers >= FEW);
    const rejected = share === 'heavy' ? keptOut.others(network) : 0;
    const before = held.get(network);
    return Math.min(
      leavesRoom ? leftBeside(ofOthers, ofAll) - ofVisitor : ofAll,
      rejected > 0 ? ofTracker / (1 + rejected) : ofAll,
      before && before.until > clock.now() ? before.part : ofAll,
    );
  };

  const admitPart = async (network: string, trackerId: string, demand: NetworkDemand): Promise<Verdict> => {
    const isLately = keptOutLately.others(network) > 0 || demand.elsewhere > 0;
    const part = partOf(network, demand, isLately);
    let beyond = part < ofAll ? await admitUpTo(`captures from ${network}`, part) : null;
    if (beyond !== null && demand.own + demand.ofOthers > ofAll) {
      held.set(network, { part, until: clock.now() + HELD_MS });
    }
    if (!isLately) return beyond;
    const partThere = leftBeside(demand.ofOthersThere, ofTracker) - ofVisitor;
    beyond ??= await admitUpTo(`captures of ${trackerId} from ${network}`, partThere);
    if (beyond !== null) keptOutLately.note(PRESSED);
    return beyond;
  };

  return async (network: string, trackerId: string, admit: Admit): Promise<Verdict> => {
    const demand = demandOf(network, trackerId);
    const beyond = demand.own > ofVisitor ? await admitPart(network, trackerId, demand) : null;
    if (beyond !== null) return beyond;
    const verdict = await admit(demand.share);
    if (demand.share === 'heavy') return verdict;
    elsewhere.count(verdict !== null);
    if (verdict !== null) {
      keptOut.note(network);
      keptOutLately.note(network);
    }
    return verdict;
  };
};
