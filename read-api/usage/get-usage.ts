import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { MINUTE } from '../../domain/kernel/time.ts';
import { outcomeSchema } from '../../domain/usage/events.ts';
import type { KeyRequest, KeyRoute } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { iso } from '../../platform/clock/clock.ts';
import { readRevealHours } from '../../queries/billing/reveal-units.ts';
import type { Reads } from '../../queries/reads.ts';
import { type UtcRange, utcRange } from '../utc-range.ts';
import { enrichmentStatus, getUsageOperation, type UsageBody } from './schemas.ts';

const hours = z.object({
  hours: z.array(
    z.object({
      hour: z.string(),
      outcome: outcomeSchema,
      requests: z.number(),
      cache_hits: z.number(),
      duration_ms: z.number(),
    }),
  ),
});

/**
 * One key's answers by hour and outcome, `from` inclusive to `to` exclusive, ISO 8601. As one value, since a month may have
 * thousands of rows, and slonik takes five times as long for them.
 */
const readHours = (db: DatabasePool, keyId: string, from: string, to: string): Promise<UsageBody['hourly']> =>
  db.oneFirst(sql.type(hours)`
    select coalesce(json_agg(json_build_object(
             'hour', to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'outcome', outcome,
             'requests', requests, 'cache_hits', cache_hits, 'duration_ms', (duration_us / 1000)::float8)
           order by hour, outcome collate "C"), '[]') as hours
    from (
      select hour, outcome, sum(requests) as requests, sum(cache_hits) as cache_hits, sum(duration_us) as duration_us
      from read.usage_hour
      where key_id = ${keyId} and hour >= ${from}::timestamptz and hour < ${to}::timestamptz
      group by hour, outcome) of_hour`);

/** The partner's work as it stands (contract, Lookup 10). `minuteAgo` as ISO 8601. */
const readEnrichmentStatus = (
  db: DatabasePool,
  partnerId: string,
  minuteAgo: string,
): Promise<UsageBody['enrichment']> =>
  db.one(sql.type(enrichmentStatus)`
    select count(distinct r.ip)::int as pending,
           count(*) filter (where r.state = 'reserved')::int as submission_unconfirmed,
           count(distinct r.ip) filter (where w.attempts > r.attempts_before)::int as retrying,
           min(r.made_at) as oldest_pending_at,
           min(w.last_attempt_at) filter (where w.attempts > r.attempts_before) as oldest_checked_at,
           (select count(distinct d.ip)::int from read.reservation d
            where d.partner_id = ${partnerId} and d.state in ('completed', 'settled')
              and d.ended_at > ${minuteAgo}::timestamptz) as completed_observed_last_minute
    from read.reservation r
    left join read.enrichment_work w on w.ip = r.ip and r.state = 'submitted'
    where r.partner_id = ${partnerId} and r.state in ('reserved', 'submitted')`);

/** Whether the key has made a reveal. */
const hasRevealed = (db: DatabasePool, keyId: string): Promise<boolean> =>
  db.oneFirst(sql.type(z.object({ revealed: z.boolean() }))`
    select exists (select from read.reveal where key_id = ${keyId})
        or exists (select from read.reveal_unit where key_id = ${keyId}) as revealed`);

const ACCOUNTING =
  'Counts every authenticated answer of /v1/lookup, GET polls, refused requests and rate limits included, ' +
  'committed before the answer was sent. Not counted: unauthorized calls, unknown paths and methods, too long ' +
  'URLs, usage, documents and health, and answers with the code usage_unavailable: a count of theirs that is stored ' +
  'late is taken back. An answer that was under way when a process or a connection was cut may be counted.';

const REVEAL_ACCOUNTING =
  'Reveals made with this key, by the hour they completed in. One unit for each whose result held any data; reading ' +
  'receipts and repeating requests add nothing.';

/** GET /v1/usage: what the calling key has used. */
export const getUsageRoute = ({ db, waitForHead }: Reads): KeyRoute => ({
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
    if (!(await waitForHead())) return refusal(request, 'usage_unavailable');
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
async function readReveals(
  db: DatabasePool,
  keyId: string,
  { from, to }: UtcRange,
): Promise<UsageBody['reveals'] | null> {
  if (!(await hasRevealed(db, keyId))) return null;
  const hourly = [...(await readRevealHours(db, { key_id: keyId }, from, to))];
  return {
    billable_reveals: hourly.reduce((sum, hour) => sum + hour.billable_reveals, 0),
    completed_reveals: hourly.reduce((sum, hour) => sum + hour.completed_reveals, 0),
    hourly,
    accounting: REVEAL_ACCOUNTING,
  };
}

function summed(hourly: UsageBody['hourly']): Pick<UsageBody, 'totals' | 'outcomes'> {
  const outcomes: Record<string, number> = Object.fromEntries(outcomeSchema.options.map((name) => [name, 0]));
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
}
