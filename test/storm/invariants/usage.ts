import { DAY, utcDay } from '../../../domain/kernel/time.ts';
import { call } from '../../support/call.ts';
import type { Load } from '../load/load.ts';
import type { Partner } from '../partners.ts';
import type { StormProcess } from '../processes.ts';
import { settle } from './settle.ts';

/** A count that landed after its response is corrected within this time. */
const COUNTED_MS = 20_000;

/** The counted usage, between what it must and what it may be. */
interface Bounds {
  readonly what: string;
  readonly least: number;
  readonly usage: number;
  readonly most: number;
}

/**
 * Usage counts every answer that a client received. Beyond that it counts at most the requests whose process or
 * connection was cut, and as errors those that a 503 answered. An answer `usage_unavailable` is not counted.
 */
export const checkUsage = async (load: Load, partner: Partner, process: StormProcess): Promise<void> => {
  const wrong = await settle(async () => {
    const bounds = await readUsage(partner, process);
    if (bounds === null) return ['usage cannot be read'];
    const outside = bounds.filter(({ least, usage, most }) => usage < least || usage > most);
    return outside.map(
      ({ what, least, usage, most }) => `${what}: ${usage} is not within ${least} and ${most}`,
    );
  }, COUNTED_MS);
  const { partnerId, lookups, captures } = partner;
  for (const what of wrong) {
    load.violations.add(
      'usage counts what was answered',
      `partner ${partnerId}: ${what}; lookups ${JSON.stringify(lookups)}, captures ${JSON.stringify(captures)}`,
    );
  }
};

const readUsage = async (
  { key, trackerId, lookups, captures }: Partner,
  { url }: StormProcess,
): Promise<Bounds[] | null> => {
  const days = `from=${utcDay(Date.now() - DAY)}&to=${utcDay(Date.now() + DAY)}`;
  const [ofKey, ofTracker] = await Promise.all(
    ['/v1/usage', `/v1/trackers/${trackerId}/usage`].map((path) =>
      call(url, 'GET', `${path}?${days}`, { key }).catch(() => null),
    ),
  );
  if (ofKey?.status !== 200 || ofTracker?.status !== 200) return null;
  const { error = 0, ...results } = ofKey.body.outcomes as Record<string, number>;
  const given = Object.values(results).reduce((sum, count) => sum + count, 0);
  return [
    { what: 'results', least: lookups.answered, usage: given, most: lookups.answered + lookups.cut },
    { what: 'errors', least: 0, usage: error, most: lookups.unavailable + lookups.cut },
    {
      what: 'captures',
      least: captures.answered,
      usage: ofTracker.body.totals.capture_requests,
      most: captures.answered + captures.unavailable + captures.cut,
    },
  ];
};
