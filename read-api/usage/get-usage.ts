import type { DatabasePool } from 'slonik';
import { MINUTE } from '../../domain/kernel/time.ts';
import { outcomeSchema } from '../../domain/usage/events.ts';
import type { KeyRequest, KeyRoute } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { iso } from '../../platform/clock/clock.ts';
import { readRevealHours } from '../../queries/billing/reveal-units.ts';
import { type UtcRange, utcRange } from '../utc-range.ts';
import { getUsageOperation } from './operations.ts';
import { hasRevealed, readEnrichmentStatus, readHours } from './rows.ts';
import type { UsageBody } from './schemas.ts';

export interface GetUsageDeps {
  readonly db: DatabasePool;
  /** Waits until the read models have all that the store has now; false after the time limit. */
  readonly caughtUp: () => Promise<boolean>;
}

const ACCOUNTING =
  'Counts every authenticated answer of /v1/lookup, GET polls, refused requests and rate limits included, ' +
  'committed before the answer was sent. Not counted: unauthorized calls, unknown paths and methods, too long ' +
  'URLs, usage, documents and health, and answers with the code usage_unavailable: a count of theirs that is stored ' +
  'late is taken back. An answer that was under way when a process or a connection was cut may be counted.';

const REVEAL_ACCOUNTING =
  'Reveals made with this key, by the hour they completed in. One unit for each whose result held any data; reading ' +
  'receipts and repeating requests add nothing.';

/** GET /v1/usage: what the calling key has used. */
export const getUsageRoute = ({ db, caughtUp }: GetUsageDeps): KeyRoute => ({
  method: 'GET',
  path: '/v1/usage',
  access: 'key',
  body: 'none',
  bodyLimit: 1_024,
  targetLimit: 512,
  operation: getUsageOperation,
  handle: async (request: KeyRequest) => {
    const range = utcRange(request.query, request.receivedAt);
    if (range === null) return refusal(request, 'invalid_range');
    // Whatever answer the caller has received, from whichever process, is in what it reads now.
    if (!(await caughtUp())) return refusal(request, 'usage_unavailable');
    const key = request.caller;
    const minuteAgo = iso(request.receivedAt - MINUTE);
    const [hourly, enrichment, reveals] = await Promise.all([
      readHours(db, key.key_id, range.from, range.to),
      readEnrichmentStatus(db, key.partner_id, minuteAgo),
      readReveals(db, key.key_id, range),
    ]);
    const body: UsageBody = {
      key_id: key.key_id,
      name: key.name,
      ...range,
      timezone: 'UTC',
      limits: {
        requests_per_second: key.requests_per_second,
        new_enrichments_per_day: key.new_enrichments_per_day,
        pending_enrichments: key.pending_enrichments,
      },
      ...summed(hourly),
      hourly,
      enrichment,
      accounting: ACCOUNTING,
      ...(reveals ? { reveals } : {}),
    };
    return { status: 200, body: JSON.stringify(body) };
  },
});

/** null: the key has made no reveal that is kept or completed. */
const readReveals = async (
  db: DatabasePool,
  keyId: string,
  { from, to }: UtcRange,
): Promise<UsageBody['reveals'] | null> => {
  if (!(await hasRevealed(db, keyId))) return null;
  const hourly = [...(await readRevealHours(db, { key_id: keyId }, from, to))];
  return {
    billable_reveals: hourly.reduce((sum, hour) => sum + hour.billable_reveals, 0),
    completed_reveals: hourly.reduce((sum, hour) => sum + hour.completed_reveals, 0),
    hourly,
    accounting: REVEAL_ACCOUNTING,
  };
};

const summed = (hourly: UsageBody['hourly']): Pick<UsageBody, 'totals' | 'outcomes'> => {
  const outcomes = Object.fromEntries(outcomeSchema.options.map((name) => [name, 0])) as Record<
    string,
    number
  >;
  let requests = 0;
  let cache_hits = 0;
  let duration = 0;
  for (const row of hourly) {
    outcomes[row.outcome] = (outcomes[row.outcome] ?? 0) + row.requests;
    requests += row.requests;
    cache_hits += row.cache_hits;
    duration += row.duration_ms;
  }
  const average_processing_ms = requests === 0 ? 0 : Math.round((duration / requests) * 1_000) / 1_000;
  return { totals: { requests, cache_hits, average_processing_ms }, outcomes };
};
