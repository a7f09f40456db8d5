/** A partner's revealed companies, for the dashboard: reveals that have not expired, grouped by the company's name. */
import { createHash } from 'node:crypto';
import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { searchKey } from '../../domain/kernel/text.ts';
import { DAY } from '../../domain/kernel/time.ts';
import { positionAt } from '../../queries/sessions/sessions.ts';

const companyRow = z.object({
  key: z.string(),
  name: z.string(),
  website: z.string().nullable(),
  industry: z.string().nullable(),
  country: z.string().nullable(),
  city: z.string().nullable(),
  region: z.string().nullable(),
  sessions: z.number(),
  first_seen_at: z.string(),
  last_seen_at: z.string(),
  /** When its newest session began, by which the rows are ordered: later visits do not change it. */
  came_at: z.string(),
  tracker_ids: z.array(z.string()),
  /** How many reveals were read for all companies. */
  read: z.number(),
});
export type CompanyRow = z.output<typeof companyRow>;

interface CompanyQuery {
  /** ISO 8601, inclusive. */
  readonly from: string;
  /** ISO 8601, exclusive. */
  readonly to: string;
  readonly partnerId: string;
  /** null: every tracker. */
  readonly trackerId: string | null;
  /** ISO 8601: reveals that completed later are left out, so that pages of one moment fit together; null: none is. */
  readonly asOf: string | null;
}

/** The newest reveals that a page groups: it takes as long for a million as for ten thousand. */
export const REVEALS_ON_A_PAGE = 1_000;
/** The newest reveals that a file groups. */
export const REVEALS_IN_A_FILE = 200_000;

export interface Companies {
  /** Ordered by `came_at`, the latest first, and then by key. */
  readonly companies: readonly CompanyRow[];
  /** Whether there are more reveals than were read. */
  readonly isPartial: boolean;
}

/**
 * Groups the sessions that began in a period by their company. A reveal expires with its session, 30 days after that began. The
 * newest reveals are read from the index alone, and the company and its last visit from its newest reveal.
 * @param limit reveals that are read
 */
export async function listCompanies(
  db: DatabasePool,
  { partnerId, trackerId, from, to, asOf }: CompanyQuery,
  limit: number,
): Promise<Companies> {
  const companies = await db.any(sql.type(companyRow)`
    with recent as materialized (
           select company_key, tracker_id, session_id, expires_at from read.reveal
           where partner_id = ${partnerId} and company_key is not null
             and expires_at >= ${from}::timestamptz + interval '30 days' and expires_at < ${to}::timestamptz + interval '30 days'
             and ${asOf === null ? sql.fragment`true` : sql.fragment`completed_at <= ${asOf}::timestamptz`}
             and (${trackerId}::uuid is null or tracker_id = ${trackerId}::uuid)
           order by expires_at desc limit ${limit}),
         grouped as (
           select company_key, count(distinct session_id)::int as sessions, min(expires_at) as first, max(expires_at) as last,
                  array_agg(distinct tracker_id) as tracker_ids
           from recent group by company_key)
    select g.company_key as key, n.company ->> 'name' as name, n.company ->> 'website' as website, n.company ->> 'industry' as industry,
           n.company ->> 'country_code' as country, n.company ->> 'city' as city, n.company ->> 'region' as region, g.sessions, g.first - interval '30 days' as first_seen_at,
           s.last_seen_at, g.last - interval '30 days' as came_at, g.tracker_ids, (select count(*)::int from recent) as read
    from grouped g
    cross join lateral (
      select r.session_id, r.result -> 'company' as company from read.reveal r
      where r.partner_id = ${partnerId} and r.company_key = g.company_key and r.expires_at = g.last limit 1) n
    join read.session s on s.session_id = n.session_id
    order by came_at desc, key`);
  return { companies, isPartial: companies[0]?.read === limit };
}

export interface Unrevealed {
  readonly sessions: number;
  /** Whether the period has more sessions than were looked at. */
  readonly isCutShort: boolean;
}

const SESSIONS_COUNTED = 10_000;
const SESSIONS_KEPT_MS = 30 * DAY;
const unrevealedRow = z.object({ sessions: z.number(), looked_at: z.number() });

/** Counts the sessions that began in a period and have no reveal, among its newest 10,000. */
export async function countUnrevealed(
  db: DatabasePool,
  { partnerId, trackerId, from, to }: Omit<CompanyQuery, 'asOf'>,
): Promise<Unrevealed> {
  const before = await positionAt(db, to, SESSIONS_KEPT_MS);
  if (before === null) return { sessions: 0, isCutShort: false };
  const { sessions, looked_at } = await db.one(sql.type(unrevealedRow)`
    select count(*) filter (where not exists (select from read.reveal r where r.session_id = s.session_id))::int as sessions,
           count(*)::int as looked_at
    from (select session_id from read.session
          where partner_id = ${partnerId} and position < ${String(before)}::bigint
            and expires_at >= ${from}::timestamptz + interval '30 days' and expires_at < ${to}::timestamptz + interval '30 days'
            and (${trackerId}::uuid is null or tracker_id = ${trackerId}::uuid)
          order by position desc limit ${SESSIONS_COUNTED}) s`);
  return { sessions, isCutShort: looked_at === SESSIONS_COUNTED };
}

const visitRow = z.object({
  session_id: z.string(),
  tracker_id: z.string(),
  visitor_country: z.string().nullable(),
  first_seen_at: z.string(),
  last_seen_at: z.string(),
  reveal_id: z.string(),
  company: z.record(z.string(), z.unknown()),
});
export type CompanyVisit = z.output<typeof visitRow>;

/** Rows of an earlier version have the key of the name in lower case until the read model is rebuilt. */
const ofCompany = (name: string) => {
  const key = createHash('md5').update(searchKey(name)).digest('hex');
  return sql.fragment`company_key in (${key}, md5(lower(${name})))`;
};

/** The sessions of one company that have not expired, the newest first. `name` as `searchKey` compares. */
export const listCompanyVisits = (
  db: DatabasePool,
  {
    partnerId,
    trackerId,
    name,
    limit,
  }: Omit<CompanyQuery, 'from' | 'to' | 'asOf'> & { readonly name: string; readonly limit: number },
): Promise<readonly CompanyVisit[]> =>
  db.any(sql.type(visitRow)`
    select * from (
      select distinct on (s.session_id) s.session_id, s.tracker_id, s.visitor_country, s.first_seen_at, s.last_seen_at,
             r.reveal_id, r.result -> 'company' as company
      from (select * from read.reveal
            where partner_id = ${partnerId} and ${ofCompany(name)}
              and (${trackerId}::uuid is null or tracker_id = ${trackerId}::uuid)
            order by completed_at desc limit ${limit}) r
      join read.session s on s.session_id = r.session_id
      order by s.session_id, r.completed_at desc) visits
    order by last_seen_at desc`);
