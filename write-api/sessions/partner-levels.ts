import type { Clock } from '../../platform/clock.ts';
import { Counts } from '../../platform/counts.ts';
import { fairLevel } from '../../platform/fair-rate.ts';
import { SECOND } from './count-by-second.ts';

/** Over which captures are counted: shorter, and a partner with a visit now and then would find no room; longer, and it keeps it in vain. */
const COUNTED_MS = 2_500;

/**
 * Shares what a network (a digest) has beyond its first captures among the partners whose trackers it visits: all visitors may come
 * from one network, such as that of a proxy which is not trusted. `processes`: returns their number, over which a balancer may spread
 * the captures of each network.
 *
 * @returns what counts a capture and returns how many of the partner's the network may have in a second, of `capacity`
 */
export const createPartnerLevels = (
  clock: Clock,
  processes: () => number,
): ((network: string, partnerId: string, capacity: number) => number) => {
  let since = Number.NEGATIVE_INFINITY;
  let now = new Map<string, Counts>();
  let before = new Map<string, Counts>();
  let levels = new Map<string, number>();

  const beginAnother = (): void => {
    const age = clock.now() - since;
    if (age >= 0 && age < COUNTED_MS) return;
    before = age >= 0 && age < 2 * COUNTED_MS ? now : new Map();
    now = new Map();
    levels = new Map();
    since = clock.now();
  };

  const levelOf = (network: string, capacity: number): number => {
    const counts = before.get(network)?.all() ?? [];
    const wanted = counts.map((count) => (count * processes() * SECOND) / COUNTED_MS).sort((a, b) => b - a);
    // The largest leaves room for as much as the others deviate.
    const room = Math.sqrt(wanted.slice(1).reduce((sum, one) => sum + one, 0));
    return fairLevel(capacity, [...wanted, room]);
  };

  return (network, partnerId, capacity) => {
    beginAnother();
    const counts = now.get(network) ?? new Counts();
    now.set(network, counts);
    counts.add(partnerId, 1);
    const level = levels.get(network) ?? levelOf(network, capacity);
    levels.set(network, level);
    return Math.ceil(Math.min(level, capacity));
  };
};
