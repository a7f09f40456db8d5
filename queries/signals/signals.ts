import type pg from 'pg';

/** Counts the clues of these names that an event before `batch` already contained. */
export const countRepeated = async (
  pool: pg.Pool,
  eventIds: readonly string[],
  batch: string,
): Promise<number> => {
  const { rows } = await pool.query<{ n: number }>({
    name: 'repeated_signals',
    text: 'select count(*)::int as n from read.signal where event_id = any ($1) and batch <> $2',
    values: [eventIds, batch],
  });
  return rows[0]?.n ?? 0;
};

/** The UTC days from `first` on that there are clues of, newest first. */
export const readSignalDays = async (pool: pg.Pool, first: string): Promise<string[]> => {
  const { rows } = await pool.query<{ day: string }>({
    name: 'signal_days',
    text: 'select day::text from read.signal_day where day >= $1::date order by signal_day.day desc',
    values: [first],
  });
  return rows.map(({ day }) => day);
};

export interface SeenDomainRow {
  readonly observations: number;
  readonly submitted_observations: number;
  readonly observed_visits: number;
  readonly sites: number;
  readonly first_seen_at: Date;
  readonly last_seen_at: Date;
  /** Its digest. */
  readonly domain: string;
  /** Of one of its clues. */
  readonly day: string;
  readonly sealed: Buffer;
}

/** An address that a whole mobile network shares may have any number; so many are counted in some 20 ms. */
export const MOST_CLUES = 10_000;

/**
 * What clues of an address since `since` come to, by e-mail domain, newest first.
 * @param visitors what the address is known as on each day, newest first: where there are too many, older clues are left
 * out, and `complete` is false. So it is where there are more domains than `most`.
 */
export const readSeenDomains = async (
  pool: pg.Pool,
  visitors: readonly string[],
  since: number,
  most: number,
): Promise<{ readonly domains: readonly SeenDomainRow[]; readonly complete: boolean }> => {
  const { rows } = await pool.query<SeenDomainRow & { readonly clues: number }>({
    name: 'seen_domains',
    text: SEEN,
    values: [visitors, new Date(since), most + 1, MOST_CLUES],
  });
  const [first] = rows;
  return {
    domains: rows.slice(0, most),
    complete: rows.length <= most && (first === undefined || first.clues < MOST_CLUES),
  };
};

/** Goes down the days until it has enough, so that the cost has a ceiling. */
const SEEN = `
  with clue as materialized (
    select c.*
    from unnest($1::text[]) as v (visitor)
    cross join lateral (
      select event_id, domain, site, page_run, submitted, occurred_at from read.signal s
      where s.visitor = v.visitor and s.occurred_at > $2
      order by s.occurred_at desc limit $4) c
    limit $4)
  select d.*, (select count(*)::int from clue) as clues, s.day::text, s.sealed
  from (select domain, max(event_id) as event_id, count(*)::int as observations,
               count(*) filter (where submitted)::int as submitted_observations,
               count(distinct page_run)::int as observed_visits, count(distinct site)::int as sites,
               min(occurred_at) as first_seen_at, max(occurred_at) as last_seen_at
        from clue group by domain order by last_seen_at desc, domain limit $3) d
  join read.signal s on s.event_id = d.event_id
  order by d.last_seen_at desc, d.domain`;

/**
 * The company whose website has each host name; `several` where more than one has. Of one company's results the newest
 * counts; results without a name count where nothing else is known.
 */
export const readProfiles = async <Company>(
  pool: pg.Pool,
  hostnames: readonly string[],
): Promise<Map<string, Company | 'several'>> => {
  const { rows } = await pool.query<{ hostname: string; several: boolean; company: Company | null }>({
    name: 'matched_profiles',
    text: PROFILES,
    values: [hostnames],
  });
  const matched = new Map<string, Company | 'several'>();
  for (const { hostname, several, company } of rows) {
    if (several) matched.set(hostname, 'several');
    else if (company !== null) matched.set(hostname, company);
  }
  return matched;
};

/** Two steps down an index a host name, however many addresses share it. */
const PROFILES = `
  select h.hostname, s.company,
         exists (select from read.company_profile o
                 where o.hostname = h.hostname and o.profile < p.profile and o.profile > '') as several
  from unnest($1::text[]) as h (hostname)
  cross join lateral (
    select ip, profile from read.company_profile f where f.hostname = h.hostname
    order by f.profile desc, f.enriched_at desc limit 1) p
  left join read.saved_lookup s on s.ip = p.ip`;
