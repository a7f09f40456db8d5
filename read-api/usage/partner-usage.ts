/** A partner's usage for the dashboard: by UTC day, key, outcome and tracker. `Range` is in whole days. */
import { LRUCache } from 'lru-cache';
import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { DAY, MINUTE, utcDay } from '../../domain/kernel/time.ts';

export interface Range {
  /** ISO 8601, inclusive. */
  readonly from: string;
  /** ISO 8601, exclusive. */
  readonly to: string;
}

const lookupDay = z.object({
  day: z.string(),
  key_id: z.string(),
  outcome: z.string(),
  requests: z.number(),
  cache_hits: z.number(),
});
export type LookupDay = z.output<typeof lookupDay>;

/** Revoked keys whose answers are counted: a script may make and revoke any number. */
const MAX_REVOKED_KEYS = 10_000;

/**
 * The answers to all keys of a partner by UTC day (`YYYY-MM-DD`), key and outcome. It reads key by key, because a join reads the
 * hours of all partners.
 */
export const readLookupDays = (
  db: DatabasePool,
  partnerId: string,
  { from, to }: Range,
): Promise<readonly LookupDay[]> =>
  db.any(sql.type(lookupDay)`
    select to_char(d.day at time zone 'UTC', 'YYYY-MM-DD') as day, k.key_id, d.outcome, d.requests, d.cache_hits
    from (
      select key_id from read.api_key where partner_id = ${partnerId} and revoked_at is null
      union all
      (select key_id from read.api_key where partner_id = ${partnerId} and revoked_at >= ${from}::timestamptz
       order by revoked_at desc limit ${MAX_REVOKED_KEYS})) k
    cross join lateral (
      select date_trunc('day', h.hour, 'UTC') as day, h.outcome, sum(h.requests)::bigint as requests,
             sum(h.cache_hits)::bigint as cache_hits
      from read.usage_hour h
      where h.key_id = k.key_id and h.hour >= ${from}::timestamptz and h.hour < ${to}::timestamptz
      group by 1, 2) d
    order by d.day`);

const trackerDay = z.object({
  day: z.string(),
  tracker_id: z.string(),
  visits: z.number(),
  sessions: z.number(),
  reveals: z.number(),
  units: z.number(),
});
export type TrackerDay = z.output<typeof trackerDay>;

const trackerIdRow = z.object({ tracker_id: z.string() });
const unitsRow = z.object({
  tracker_id: z.string(),
  day: z.string(),
  reveals: z.number(),
  units: z.number(),
});
type UnitsOfDay = Omit<z.output<typeof unitsRow>, 'tracker_id' | 'day'>;

const MAX_DAYS_KEPT = 100_000;
const DAYS_KEPT_MS = 10 * MINUTE;

export type ReadTrackerDays = (
  partnerId: string,
  trackerId: string | null,
  range: Range,
) => Promise<readonly TrackerDay[]>;

/**
 * Reads visits, sessions, completed reveals and units by UTC day and tracker, deleted trackers included. It reads tracker by
 * tracker, as the lookups key by key. `trackerId` null: all of the partner's. Units are counted row by row, so those of days that
 * ended over a day ago are kept in memory for ten minutes.
 */
export function createTrackerDays(db: DatabasePool, now: () => number): ReadTrackerDays {
  const kept = new LRUCache<string, UnitsOfDay>({ max: MAX_DAYS_KEPT, ttl: DAYS_KEPT_MS, perf: { now } });

  async function unitsOf(trackers: readonly string[], days: readonly string[]): Promise<TrackerDay[]> {
    const closedBefore = utcDay(now() - DAY);
    const all = trackers.flatMap((tracker_id) =>
      days.map((day) => ({ tracker_id, day, key: `${tracker_id} ${day}` })),
    );
    const missing = all.filter(({ key }) => !kept.has(key));
    const read = new Map<string, UnitsOfDay>();
    for (const { tracker_id, day, reveals, units } of await readUnits(db, missing)) {
      read.set(`${tracker_id} ${day}`, { reveals, units });
    }
    for (const { key, day } of missing) if (day < closedBefore) kept.set(key, read.get(key) ?? NO_UNITS);
    return all.flatMap(({ tracker_id, day, key }) => {
      const { reveals, units } = read.get(key) ?? kept.get(key) ?? NO_UNITS;
      return reveals === 0 ? [] : [{ tracker_id, day, visits: 0, sessions: 0, reveals, units }];
    });
  }

  return async (partnerId, trackerId, range) => {
    const trackers = await db.any(sql.type(trackerIdRow)`
      select tracker_id from read.tracker
      where partner_id = ${partnerId} and (${trackerId}::uuid is null or tracker_id = ${trackerId}::uuid)`);
    const ids = trackers.map(({ tracker_id }) => tracker_id);
    const [visits, units] = await Promise.all([readVisits(db, ids, range), unitsOf(ids, daysIn(range))]);
    const rows = new Map<string, TrackerDay>();
    for (const row of [...visits, ...units]) {
      const key = `${row.day} ${row.tracker_id}`;
      const { visits: seen = 0, sessions = 0 } = rows.get(key) ?? {};
      rows.set(key, { ...row, visits: seen + row.visits, sessions: sessions + row.sessions });
    }
    return [...rows.values()].sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0));
  };
}

const NO_UNITS: UnitsOfDay = { reveals: 0, units: 0 };

function daysIn({ from, to }: Range): string[] {
  const first = Date.parse(from);
  const count = Math.max(0, Math.ceil((Date.parse(to) - first) / DAY));
  return Array.from({ length: count }, (_, day) => utcDay(first + day * DAY));
}

/** Day by day, because to find the day of each row takes longer than to read it. */
const readUnits = (
  db: DatabasePool,
  days: readonly { readonly tracker_id: string; readonly day: string }[],
) =>
  db.any(sql.type(unitsRow)`
    select d.tracker_id, to_char(d.day, 'YYYY-MM-DD') as day, u.reveals, u.units
    from unnest(${sql.array(
      days.map(({ tracker_id }) => tracker_id),
      'uuid',
    )}, ${sql.array(
      days.map(({ day }) => day),
      'date',
    )}) d (tracker_id, day)
    cross join lateral (
      select count(*)::bigint as reveals, sum(units)::bigint as units from read.reveal_unit r
      where r.tracker_id = d.tracker_id and r.completed_at >= d.day::timestamp at time zone 'UTC'
        and r.completed_at < (d.day + 1)::timestamp at time zone 'UTC') u
    where u.reveals > 0`);

const readVisits = (db: DatabasePool, trackerIds: readonly string[], { from, to }: Range) => {
  const during = sql.fragment`hour >= ${from}::timestamptz and hour < ${to}::timestamptz`;
  return db.any(sql.type(trackerDay)`
    select to_char(d.day at time zone 'UTC', 'YYYY-MM-DD') as day, t.tracker_id, sum(d.visits)::bigint as visits,
           sum(d.sessions)::bigint as sessions, 0 as reveals, 0 as units
    from unnest(${sql.array([...trackerIds], 'uuid')}) t (tracker_id)
    cross join lateral (
      select date_trunc('day', hour, 'UTC') as day, sum(capture_requests) as visits, 0 as sessions
      from read.tracker_calls_hour h where h.tracker_id = t.tracker_id and ${during} group by 1
      union all
      select date_trunc('day', hour, 'UTC'), 0, sum(sessions)
      from read.tracker_hour h where h.tracker_id = t.tracker_id and ${during} group by 1) d
    group by 1, 2`);
};

const partnerUse = z.object({
  lookups: z.number(),
  captures: z.number(),
  sessions: z.number(),
  units: z.number(),
});
export type PartnerUse = z.output<typeof partnerUse>;

/** Answers to lookups, captures, sessions and units of a partner. It reads key by key and tracker by tracker, as above. */
export const readPartnerUse = (
  db: DatabasePool,
  partnerId: string,
  { from, to }: Range,
): Promise<PartnerUse> => {
  const during = sql.fragment`hour >= ${from}::timestamptz and hour < ${to}::timestamptz`;
  return db.one(sql.type(partnerUse)`
    select (select coalesce(sum(n.requests), 0)::bigint
            from (select key_id from read.api_key
                  where partner_id = ${partnerId} and (revoked_at is null or revoked_at >= ${from}::timestamptz)
                  limit ${MAX_REVOKED_KEYS}) k
            cross join lateral (
              select sum(h.requests) as requests from read.usage_hour h where h.key_id = k.key_id and ${during}) n) as lookups,
           coalesce(sum(n.captures), 0)::bigint as captures, coalesce(sum(n.sessions), 0)::bigint as sessions,
           (select coalesce(sum(units), 0)::bigint from read.reveal_unit
            where partner_id = ${partnerId} and completed_at >= ${from}::timestamptz and completed_at < ${to}::timestamptz) as units
    from read.tracker t
    cross join lateral (
      select (select sum(capture_requests) from read.tracker_calls_hour h where h.tracker_id = t.tracker_id and ${during}) as captures,
             (select sum(sessions) from read.tracker_hour h where h.tracker_id = t.tracker_id and ${during}) as sessions) n
    where t.partner_id = ${partnerId}`);
};

const startState = z.object({
  hasLookedUp: z.boolean(),
  hasVisit: z.boolean(),
  hasDelivery: z.boolean(),
  webhookId: z.string().nullable(),
});

export type StartState = z.output<typeof startState>;

/** Which first steps a partner has taken: a lookup, a visit on a website, a delivered webhook. */
export const readStartState = (db: DatabasePool, partnerId: string): Promise<StartState> =>
  db.one(sql.type(startState)`
    select exists (select from read.api_key k
                   where k.partner_id = ${partnerId}
                     and exists (select from read.usage_hour h where h.key_id = k.key_id)) as "hasLookedUp",
           exists (select from read.tracker t
                   where t.partner_id = ${partnerId}
                     and exists (select from read.tracker_hour h where h.tracker_id = t.tracker_id)) as "hasVisit",
           exists (select from read.webhook_total w
                   where w.partner_id = ${partnerId} and w.state = 'delivered' and w.deliveries > 0) as "hasDelivery",
           (select e.webhook_id from read.webhook_endpoint e
            where e.partner_id = ${partnerId} and e.deleted_at is null order by e.created_at limit 1) as "webhookId"`);
