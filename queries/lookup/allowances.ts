/** What keys have used of their allowances of new enrichments. */
import type pg from 'pg';
import { isoTime, utcDay } from '../../domain/kernel/time.ts';

/** A key that has used a share of its new enrichments of the UTC day. */
export interface UsedAllowance {
  readonly partner_id: string;
  readonly key_id: string;
  readonly name: string;
  readonly used: number;
  readonly limit: number;
  readonly day: string;
}

/** Lists usable keys that have used at least `share` of their allowance: of one partner, or (null) of all. `now` in milliseconds. */
export async function listUsedAllowances(
  pool: pg.Pool,
  partnerId: string | null,
  share: number,
  now: number,
): Promise<UsedAllowance[]> {
  const day = utcDay(now);
  const { rows } = await pool.query<Omit<UsedAllowance, 'day'>>(
    `with usable as (
       select partner_id, key_id, name, new_enrichments_per_day as limit, created_at from read.api_key
       where new_enrichments_per_day > 0 and revoked_at is null and coalesce(expires_at, 'infinity') > $2
         ${partnerId === null ? '' : 'and partner_id = $4'})
     select k.partner_id, k.key_id, k.name, u.used, k.limit
     from (select distinct partner_id from usable) p
     cross join lateral (
       select key_id, count(*)::int as used
       from (select key_id from read.reservation
             where partner_id = p.partner_id and state in ('reserved', 'submitted') and made_at >= $1
             union all
             select key_id from read.reservation
             where partner_id = p.partner_id and ended_at >= $1 and made_at >= $1) r
       group by key_id) u
     join usable k using (key_id)
     where u.used >= k.limit * $3::float8
     order by k.created_at`,
    [new Date(`${day}T00:00:00Z`), isoTime(now), share, ...(partnerId === null ? [] : [partnerId])],
  );
  return rows.map((row) => ({ ...row, day }));
}

/** A partner's unfinished enrichments, and the highest pending limit of its usable keys. `now` in milliseconds. */
export async function readPending(
  pool: pg.Pool,
  partnerId: string,
  now: number,
): Promise<{ readonly pending: number; readonly limit: number }> {
  const { rows } = await pool.query<{ pending: number; limit: number }>(
    `select (select count(*)::int from read.reservation
             where partner_id = $1 and state in ('reserved', 'submitted')) as pending,
            (select coalesce(max(pending_enrichments), 0) from read.api_key
             where partner_id = $1 and revoked_at is null and coalesce(expires_at, 'infinity') > $2) as limit`,
    [partnerId, isoTime(now)],
  );
  return rows[0] ?? { pending: 0, limit: 0 };
}
