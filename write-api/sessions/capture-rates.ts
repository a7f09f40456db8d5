import { DAY, MINUTE } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock.ts';
import { createFairRate, roomBesideSmall } from '../../platform/fair-rate.ts';
import { createKeptOut } from '../../platform/kept-out.ts';
import type { SharedNotes } from '../../platform/kept-out-exchange.ts';
import type { RateLimiter, Verdict } from '../../platform/rate-limit.ts';
import type { ListedTracker } from '../../queries/trackers/directory.ts';
import { countBySecond } from './count-by-second.ts';
import { createDemand } from './demand.ts';
import type { NetworkDemand, NetworkRates } from './network-demand.ts';
import { createNetworkShares } from './network-shares.ts';

/** With the largest bodies, kept for 30 days, they take a fourteenth of a partner's default room. */
const SESSIONS_OF_NETWORK = 10_000;

/**
 * Admits captures within the rate of their tracker and the rate of all trackers. While captures of other partners were
 * rejected within the last minute, each partner is limited to its part of the latter, over all of its trackers and
 * visitors: the others keep room for what they still send. The first captures of each network (a digest) in a second come
 * before its others: one visitor may have all addresses of a network, and know the trackers of many partners.
 */
export const createCaptureRates = (
  config: NetworkRates,
  limiter: RateLimiter,
  clock: Clock,
  shared: { readonly partners: SharedNotes; readonly networks: SharedNotes } | null,
  processes: () => number = () => 1,
): ((tracker: Pick<ListedTracker, 'tracker_id' | 'partner_id'>, network: string) => Promise<Verdict>) => {
  const demandOf = createDemand(clock);
  const keptOut = createKeptOut({
    windowMs: MINUTE,
    now: clock.now,
    shared: shared?.partners ?? null,
    stillWants: demandOf.of,
  });
  const wantedWithRoom = (partnerId: string): readonly number[] => {
    const wanted = keptOut.wantedByOthers(partnerId);
    return [...wanted, roomBesideSmall(config.CAPTURES_PER_SECOND, wanted.length + 1, wanted)];
  };
  const admitPartner = createFairRate({
    ceiling: config.CAPTURES_PER_SECOND,
    keptOut: { ...keptOut, wantedByOthers: wantedWithRoom },
    admit: (name, ceiling) => limiter.admit(`captures: ${name}`, ceiling),
  });
  const admitNetwork = createNetworkShares(config, clock, shared?.networks ?? null, processes);
  const wanted = countBySecond(clock);
  /** What a network lacks beyond its first captures keeps no room. */
  const wantedBy = (partnerId: string, { isFirst }: NetworkDemand): number | null => {
    if (!isFirst) return null;
    // Of a whole second: the visits of a moment would keep their room for a minute.
    const { ownBefore } = wanted(partnerId);
    demandOf.count(partnerId);
    return ownBefore + 1;
  };
  return ({ tracker_id, partner_id }, network) =>
    admitNetwork(network, {
      partnerId: partner_id,
      trackerId: tracker_id,
      admitThere: () => limiter.admit(`captures of ${tracker_id}`, config.CAPTURES_PER_SECOND_PER_TRACKER),
      admitAtService: (demand) => admitPartner(partner_id, wantedBy(partner_id, demand)),
    });
};

/**
 * Returns whether one more session of visitors from a network (a digest) may take of the second half of a partner's room for
 * deliveries and their bodies: 10,000 a day may. One visitor's rate alone would fill that room in days, and all others would be
 * refused for as long as bodies are kept.
 */
export const createSessionsOfNetworks =
  ({ admit }: Pick<RateLimiter, 'admit'>) =>
  async (partnerId: string, network: string): Promise<boolean> =>
    (await admit(`sessions of ${partnerId} from ${network}`, SESSIONS_OF_NETWORK, DAY)) === null;
