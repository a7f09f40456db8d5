import pTimeout from 'p-timeout';
import type pg from 'pg';
import { parsePublicAddress } from '../../domain/kernel/address.ts';
import { type Named, profileName, websiteHost } from '../../domain/kernel/text.ts';
import { DAY, isoTime, utcDay } from '../../domain/kernel/time.ts';
import { KEPT_DAYS, visitorText } from '../../domain/signals/events.ts';
import { company as companySchema, type ShownCompany } from '../../http/contract/schemas/company.ts';
import {
  type CluesOf,
  type CompanySignals,
  UNAVAILABLE_SIGNALS,
} from '../../http/contract/schemas/company-signals.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { type DayKeys, tryToOpen } from '../../platform/crypto/keyring.ts';
import { createSemaphores } from '../../platform/limits/semaphore.ts';

/** The combined clues of one e-mail domain. */
export interface SeenDomain {
  readonly domain: string;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  readonly observations: number;
  readonly submitted_observations: number;
  readonly observed_visits: number;
  readonly sites: number;
}

/** Saved profiles whose website has the host name: none, one, or several. */
type Profile<Company> = Company | 'several' | null;

/**
 * Lists reasons for caution (contract, Company signals 2), in this order.
 * @param isSame whether the matched company is that of the lookup; null: the lookup found none
 */
const flagsOf = (seen: SeenDomain, profile: Profile<object>, isSame: boolean | null): string[] => [
  ...(seen.submitted_observations === 0 ? ['field_only'] : []),
  ...(profile === null ? ['unmatched_domain'] : []),
  ...(profile === 'several' ? ['ambiguous_domain'] : []),
  ...(profile !== null && profile !== 'several' && isSame === false ? ['differs_from_lookup'] : []),
  ...(seen.observations === 1 ? ['single_observation'] : []),
];

/** Makes a candidate. `found`: the lookup's company with the host name of its website. */
export function candidateOf<Company extends Named>(
  seen: SeenDomain,
  profile: Profile<Company>,
  found: { readonly company: Named; readonly host: string | null } | null,
) {
  const company = profile === 'several' ? null : profile;
  const isSame = found && company && (found.host === seen.domain || isNamedAlike(found.company, company));
  const { domain, first_seen_at, last_seen_at, ...counts } = seen;
  return {
    domain,
    company,
    verified: false as const,
    evidence: seen.submitted_observations > 0 ? ('submitted' as const) : ('field_only' as const),
    first_seen_at,
    last_seen_at,
    ...counts,
    flags: flagsOf(seen, profile, isSame),
  };
}

const isNamedAlike = (one: Named, other: Named): boolean =>
  profileName(one) !== '' && profileName(one) === profileName(other);

/** Counts the clues of these names that an event before `batch` already contained. */
export async function countRepeated(
  pool: pg.Pool,
  eventIds: readonly string[],
  batch: string,
): Promise<number> {
  const { rows } = await pool.query<{ n: number }>({
    name: 'repeated_signals',
    text: 'select count(*)::int as n from read.signal where event_id = any ($1) and batch <> $2',
    values: [eventIds, batch],
  });
  return rows[0]?.n ?? 0;
}

/** The UTC days from `first` on that there are clues of, newest first. */
async function readSignalDays(pool: pg.Pool, first: string): Promise<string[]> {
  const { rows } = await pool.query<{ day: string }>({
    name: 'signal_days',
    text: 'select day::text from read.signal_day where day >= $1::date order by signal_day.day desc',
    values: [first],
  });
  return rows.map(({ day }) => day);
}

/** `domain` is its digest. */
interface SeenDomainRow extends Omit<SeenDomain, 'first_seen_at' | 'last_seen_at'> {
  readonly first_seen_at: Date;
  readonly last_seen_at: Date;
  /** UTC day of one of its clues. */
  readonly day: string;
  readonly sealed: Buffer;
}

/** An address that a whole mobile network shares may have any number; so many are counted in some 20 ms. */
export const MAX_CLUES = 10_000;

/**
 * What clues of an address since `since` come to, by e-mail domain, newest first.
 * @param visitors what the address is known as on each day, newest first: where there are too many, older clues are left
 * out, and `complete` is false. So it is where there are more domains than `most`.
 */
export async function readSeenDomains(
  pool: pg.Pool,
  visitors: readonly string[],
  since: number,
  most: number,
): Promise<{ readonly domains: readonly SeenDomainRow[]; readonly complete: boolean }> {
  const { rows } = await pool.query<SeenDomainRow & { readonly clues: number }>({
    name: 'seen_domains',
    text: SEEN,
    values: [visitors, new Date(since), most + 1, MAX_CLUES],
  });
  const [first] = rows;
  return {
    domains: rows.slice(0, most),
    complete: rows.length <= most && (first === undefined || first.clues < MAX_CLUES),
  };
}

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

/** Companies that older releases stored lack later fields, which are then null. */
const UNKNOWN_COMPANY = Object.fromEntries(Object.keys(companySchema.shape).map((field) => [field, null]));

/**
 * The company whose website has each host name; `several` where more than one has. Of one company's results the newest
 * counts; results without a name count where nothing else is known.
 */
export async function readProfiles(
  pool: pg.Pool,
  hostnames: readonly string[],
): Promise<Map<string, ShownCompany | 'several'>> {
  const { rows } = await pool.query<{ hostname: string; several: boolean; company: ShownCompany | null }>({
    name: 'matched_profiles',
    text: PROFILES,
    values: [hostnames],
  });
  const matched = new Map<string, ShownCompany | 'several'>();
  for (const { hostname, several, company } of rows) {
    if (several) matched.set(hostname, 'several');
    else if (company !== null) matched.set(hostname, { ...UNKNOWN_COMPANY, ...company });
  }
  return matched;
}

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

interface CluesDeps {
  /** For clues alone, so that they take no connection from other lookups. */
  readonly pool: pg.Pool;
  readonly dayKeys: DayKeys;
  readonly clock: Clock;
  /** Time limit, milliseconds; then the answer has no clues. */
  readonly limitMs: number;
  /** Called for each answer without clues. */
  readonly onUnavailable: () => void;
}

/** Contract, Company signals. */
const MAX_CANDIDATES = 10;

/** Of three connections, those that one partner may use: a mobile network's address may have so many clues that a hundred lookups a second would take all. */
const CONNECTIONS_PER_PARTNER = 2;

/** The clues about an address, as far as they can be read at once. Never throws. */
export function createClues(deps: CluesDeps): CluesOf {
  const { limitMs, onUnavailable } = deps;
  const semaphores = createSemaphores({ limit: CONNECTIONS_PER_PARTNER, maxWaitMs: limitMs });
  return async (partnerId, text, found) => {
    const reading = semaphores.enter(partnerId, () => read(deps, text, found));
    const signals = await pTimeout(reading, { milliseconds: limitMs }).catch(() => UNAVAILABLE_SIGNALS);
    if (signals === UNAVAILABLE_SIGNALS) onUnavailable();
    return signals;
  };
}

async function read(
  { pool, dayKeys, clock }: CluesDeps,
  text: string | null,
  found: ShownCompany | null,
): Promise<CompanySignals> {
  const ip = text === null ? null : parsePublicAddress(text);
  if (ip === null) return UNAVAILABLE_SIGNALS;
  const since = clock.now() - KEPT_DAYS * DAY;
  const visitors = await visitorsOf(dayKeys, ip, await readSignalDays(pool, utcDay(since)));
  if (visitors.length === 0) return available([], false);
  const { domains, complete } = await readSeenDomains(pool, visitors, since, MAX_CANDIDATES);
  const opened = await Promise.all(domains.map((row) => open(dayKeys, row)));
  const seen = opened.filter((one) => one !== null);
  if (seen.length === 0) return available([], false);
  const profiles = await readProfiles(
    pool,
    seen.map(({ domain }) => domain),
  );
  const savedCompany = found && { company: found, host: websiteHost(found.website) };
  const candidates = seen.map((one) => candidateOf(one, profiles.get(one.domain) ?? null, savedCompany));
  return available(candidates, !complete);
}

const available = (candidates: CompanySignals['candidates'], truncated: boolean): CompanySignals => ({
  status: 'available',
  window_days: KEPT_DAYS,
  truncated,
  candidates,
});

/** What the address is known as on each of the days whose key is still there. */
async function visitorsOf(dayKeys: DayKeys, ip: string, days: readonly string[]): Promise<string[]> {
  const keys = await Promise.all(days.map((day) => dayKeys.of(day)));
  return keys.flatMap((key) => (key === null ? [] : [key.digest(visitorText(ip))]));
}

/** null: its day has expired at this moment, or its key was destroyed before. */
async function open(dayKeys: DayKeys, row: SeenDomainRow): Promise<SeenDomain | null> {
  const key = await dayKeys.of(row.day);
  const domain = key && tryToOpen(key, row.sealed, row.domain);
  if (domain === null) return null;
  const { observations, submitted_observations, observed_visits, sites } = row;
  return {
    domain: domain.toString(),
    first_seen_at: isoTime(row.first_seen_at.getTime()),
    last_seen_at: isoTime(row.last_seen_at.getTime()),
    observations,
    submitted_observations,
    observed_visits,
    sites,
  };
}
