import type pg from 'pg';
import { DAY, isoTime, utcDay } from '../../domain/kernel/time.ts';
import type { WorkKind } from '../../domain/lookup/events.ts';
import { INTAKE_KEPT_DAYS } from '../../domain/lookup/intake.ts';
import { RESULT_KEPT_DAYS, type SavedResult, withAllFields } from '../../domain/lookup/result.ts';
import type { Config } from '../../platform/config/config.ts';

/** What the read model knows of an address, and of one partner's latest reservation for it. */
export interface LookupView {
  readonly saved: SavedResult | null;
  readonly reservation: null | {
    readonly state: 'reserved' | 'submitted' | 'completed' | 'gave_up' | 'settled';
    readonly kind: WorkKind;
    readonly madeAt: string;
    readonly endedAt: string | null;
  };
  /** The current round, visible to partners with a reservation in it; attempts since then. */
  readonly work: null | { readonly attempts: number; readonly nextAttemptAt: string };
}

const VIEW = `
  select s.ip as saved_ip, s.match_type, s.network, s.company, s.sources, s.enriched_at, s.fresh_until,
         s.needs_company_enrichment, s.answered_by, r.state, r.kind, r.made_at, r.ended_at,
         w.attempts - r.attempts_before as attempts, w.next_attempt_at
  from (select $1::text as ip) q
  left join read.saved_lookup s on s.ip = q.ip
    and (s.enriched_at >= ($3::date + 1)::timestamp at time zone 'UTC'
         or exists (select from work.lookup_use u where u.ip = s.ip and u.asked_on > $3::date))
  left join lateral (
    select * from read.reservation o
    where o.partner_id = $2 and o.ip = q.ip and (o.ended_at is null or o.ended_at >= $4::date::timestamp at time zone 'UTC')
    order by o.made_at desc, o.reservation_id desc limit 1) r on true
  left join read.enrichment_work w on w.ip = q.ip and r.state = 'submitted'`;

/** What is kept at `now`, whatever is deleted yet. `ip` in canonical form; `now` in milliseconds. */
export async function readLookup(
  pool: pg.Pool,
  ip: string,
  partnerId: string,
  now: number,
): Promise<LookupView> {
  const { rows } = await pool.query({
    name: 'lookup_view',
    text: VIEW,
    values: [ip, partnerId, utcDay(now - RESULT_KEPT_DAYS * DAY), utcDay(now - INTAKE_KEPT_DAYS * DAY)],
  });
  const row = rows[0];
  return {
    saved: row.saved_ip === null ? null : toSavedResult(row),
    reservation:
      row.state === null
        ? null
        : {
            state: row.state,
            kind: row.kind,
            madeAt: row.made_at.toISOString(),
            endedAt: row.ended_at?.toISOString() ?? null,
          },
    work:
      row.attempts === null
        ? null
        : { attempts: row.attempts, nextAttemptAt: row.next_attempt_at.toISOString() },
  };
}

const toSavedResult = (row: pg.QueryResultRow): SavedResult =>
  withAllFields({
    ip: row.saved_ip,
    match_type: row.match_type,
    network: row.network,
    company: row.company,
    sources: row.sources,
    enriched_at: row.enriched_at.toISOString(),
    fresh_until: row.fresh_until.toISOString(),
    needs_company_enrichment: row.needs_company_enrichment,
    answered_by: row.answered_by,
  });

/** Loads the saved result of an address, which all partners share. */
export async function readSaved(pool: pg.Pool, ip: string): Promise<SavedResult | null> {
  const { rows } = await pool.query('select *, ip as saved_ip from read.saved_lookup where ip = $1', [ip]);
  return rows[0] ? toSavedResult(rows[0]) : null;
}

/** Enrichments under way, other than those of the addresses given: what the shared ceiling is held against. */
export async function countOutstanding(pool: pg.Pool, except: readonly string[]): Promise<number> {
  const { rows } = await pool.query({
    name: 'count_outstanding',
    // Found by their key, and not looked for at each of all the others.
    text: `select ((select count(*) from read.enrichment_work)
                 - (select count(*) from read.enrichment_work where ip = any ($1)))::int as n`,
    values: [except],
  });
  return rows[0].n;
}

/** What a provider answered on a UTC day. Counts of the last seconds may be missing. */
export interface ProviderDay {
  readonly provider: string;
  readonly budget_used: number;
  readonly calls: number;
  readonly failed: number;
  readonly not_asked: number;
  readonly company: number;
  readonly isp: number;
  readonly unclassified: number;
  readonly unknown: number;
  readonly taken: number;
  /** Mean duration of a call, milliseconds; null: there was none. */
  readonly mean_ms: number | null;
}

/** Reads the counts of a UTC day (`YYYY-MM-DD`), by provider. */
export async function readProviderDay(pool: pg.Pool, day: string): Promise<ProviderDay[]> {
  const { rows } = await pool.query<ProviderDay>(
    `select provider, budget_used, calls::float8, failed::float8, not_asked::float8, company::float8, isp::float8,
            unclassified::float8, unknown::float8, taken::float8,
            case when calls > 0 then round(duration_ms::numeric / calls, 1)::float8 end as mean_ms
     from work.provider_day, lateral (select company + isp + unclassified + unknown + failed as calls) c
     where day = $1::date order by provider`,
    [day],
  );
  return rows;
}

/** How a provider answers: its last call, and its day. */
export interface ProviderState {
  readonly name: string;
  readonly kind: string;
  readonly calls_today: number;
  readonly failed_today: number;
  readonly budget_left: number | null;
  /** When its last call failed; null: it did not. */
  readonly failing_since: string | null;
}

/** Returns the states of the configured providers. `now` in milliseconds. */
export async function readProviderStates(
  pool: pg.Pool,
  providers: Config['providers'],
  now: number,
): Promise<ProviderState[]> {
  const days = await readProviderDay(pool, utcDay(now));
  const { rows } = await pool.query<{ provider: string; failed: Date | null; answered: Date | null }>(
    `select provider, max(last_failed_at) as failed, max(last_answered_at) as answered
     from work.provider_day where day >= $1::date group by provider`,
    [utcDay(now - DAY)],
  );
  return providers.map((settings) => {
    const today = days.find(({ provider }) => provider === settings.name);
    const last = rows.find(({ provider }) => provider === settings.name);
    const failed = last?.failed ?? null;
    const isFailing = failed !== null && failed > (last?.answered ?? new Date(0));
    const { requestsPerDay = null } = 'timeoutMs' in settings ? settings : {};
    return {
      name: settings.name,
      kind: settings.kind,
      calls_today: today?.calls ?? 0,
      failed_today: today?.failed ?? 0,
      budget_left: requestsPerDay === null ? null : Math.max(0, requestsPerDay - (today?.budget_used ?? 0)),
      failing_since: isFailing ? isoTime(failed.getTime()) : null,
    };
  });
}

/** Counts unfinished enrichments over all partners, up to `limit`. */
export async function countOpenWork(pool: pg.Pool, limit: number): Promise<number> {
  const { rows } = await pool.query<{ outstanding: number }>(
    'select count(*)::int as outstanding from (select from read.enrichment_work limit $1) w',
    [limit],
  );
  return rows[0]?.outstanding ?? 0;
}
