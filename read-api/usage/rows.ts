import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import type { EnrichmentStatusBody, UsageBody } from './schemas.ts';

const hourRow = z.object({
  hour: z.string(),
  outcome: z.string(),
  requests: z.number(),
  cache_hits: z.number(),
  duration_us: z.number(),
});

/** One key's answers by hour and outcome, `from` inclusive to `to` exclusive, ISO 8601. */
export const readHours = async (
  db: DatabasePool,
  keyId: string,
  from: string,
  to: string,
): Promise<UsageBody['hourly']> => {
  const rows = await db.any(sql.type(hourRow)`
    select hour, outcome, sum(requests)::bigint as requests, sum(cache_hits)::bigint as cache_hits,
           sum(duration_us)::bigint as duration_us
    from read.usage_hour
    where key_id = ${keyId} and hour >= ${from}::timestamptz and hour < ${to}::timestamptz
    group by hour, outcome
    order by hour, outcome collate "C"`);
  return rows.map(({ duration_us, ...row }) => ({
    ...row,
    outcome: row.outcome as UsageBody['hourly'][number]['outcome'],
    duration_ms: duration_us / 1_000,
  }));
};

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
           count(distinct r.ip) filter (where w.attempts > 0)::int as retrying,
           min(r.made_at) as oldest_pending_at,
           min(w.last_attempt_at) as oldest_checked_at,
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

/** The answers to all keys of a partner by UTC day (`YYYY-MM-DD`) and outcome, since an instant (ISO 8601). */
export const readDays = (
  db: DatabasePool,
  partnerId: string,
  since: string,
): Promise<readonly z.output<typeof dayRow>[]> =>
  db.any(sql.type(dayRow)`
    select to_char(h.hour at time zone 'UTC', 'YYYY-MM-DD') as day, h.outcome, sum(h.requests)::bigint as requests,
           sum(h.cache_hits)::bigint as cache_hits
    from read.usage_hour h
    join read.api_key k using (key_id)
    where k.partner_id = ${partnerId} and h.hour >= ${since}::timestamptz
    group by day, h.outcome order by day, h.outcome collate "C"`);
