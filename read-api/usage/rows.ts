import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { outcomeSchema } from '../../domain/usage/events.ts';
import type { EnrichmentStatusBody, UsageBody } from './schemas.ts';

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
export const readHours = (
  db: DatabasePool,
  keyId: string,
  from: string,
  to: string,
): Promise<UsageBody['hourly']> =>
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

const statusRow = z.object({
  pending: z.number(),
  submission_unconfirmed: z.number(),
  retrying: z.number(),
  oldest_pending_at: z.string().nullable(),
  oldest_checked_at: z.string().nullable(),
  completed_observed_last_minute: z.number(),
});

/** The partner's work as it stands (contract, Lookup 10). `minuteAgo` as ISO 8601. */
export const readEnrichmentStatus = (
  db: DatabasePool,
  partnerId: string,
  minuteAgo: string,
): Promise<EnrichmentStatusBody> =>
  db.one(sql.type(statusRow)`
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
export const hasRevealed = (db: DatabasePool, keyId: string): Promise<boolean> =>
  db.oneFirst(sql.type(z.object({ revealed: z.boolean() }))`
    select exists (select from read.reveal where key_id = ${keyId})
        or exists (select from read.reveal_unit where key_id = ${keyId}) as revealed`);

const dayRow = z.object({
  day: z.string(),
  outcome: z.string(),
  requests: z.number(),
  cache_hits: z.number(),
});

/** Revoked keys whose answers are counted: a script may make and revoke any number. */
const MOST_REVOKED = 10_000;

/**
 * The answers to all keys of a partner by UTC day (`YYYY-MM-DD`) and outcome, since an instant (ISO 8601). It reads key by key,
 * because a join reads the hours of all partners.
 */
export const readDays = (
  db: DatabasePool,
  partnerId: string,
  since: string,
): Promise<readonly z.output<typeof dayRow>[]> =>
  db.any(sql.type(dayRow)`
    select to_char(d.day at time zone 'UTC', 'YYYY-MM-DD') as day, d.outcome, sum(d.requests)::bigint as requests,
           sum(d.cache_hits)::bigint as cache_hits
    from (
      select key_id from read.api_key where partner_id = ${partnerId} and revoked_at is null
      union all
      (select key_id from read.api_key where partner_id = ${partnerId} and revoked_at >= ${since}::timestamptz
       order by revoked_at desc limit ${MOST_REVOKED})) k
    cross join lateral (
      select date_trunc('day', h.hour, 'UTC') as day, h.outcome, sum(h.requests) as requests,
             sum(h.cache_hits) as cache_hits
      from read.usage_hour h where h.key_id = k.key_id and h.hour >= ${since}::timestamptz
      group by 1, 2) d
    group by d.day, d.outcome order by d.day, d.outcome collate "C"`);
