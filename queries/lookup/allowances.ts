/** What keys have used of their allowances of new enrichments, by the UTC day. */
import type pg from 'pg';
import { utcDay } from '../../domain/kernel/time.ts';

/** SQL of the new enrichments of a partner since `$1`, by key. */
const usedByKey = (partner: string): string => `
  select key_id, count(*)::int as used
  from (select key_id from read.reservation
        where partner_id = ${partner} and state in ('reserved', 'submitted') and made_at >= $1
        union all
        select key_id from read.reservation
        where partner_id = ${partner} and ended_at >= $1 and made_at >= $1) r
  group by key_id`;

const startOfDay = (now: number): Date => new Date(`${utcDay(now)}T00:00:00Z`);

export interface Allowance {
  /** New enrichments of the day, by key. */
  readonly reserved: ReadonlyMap<string, number>;
  /** Unfinished ones of the partner's, and the highest limit of them that a usable key has. */
  readonly pending: number;
  readonly pendingLimit: number;
}

/** Returns what a partner has used of its allowances. `now` in milliseconds. */
export async function readAllowance(pool: pg.Pool, partnerId: string, now: number): Promise<Allowance> {
  const [used, pending] = await Promise.all([
    pool.query<{ key_id: string; used: number }>(usedByKey('$2'), [startOfDay(now), partnerId]),
    pool.query<Omit<Allowance, 'reserved'>>(
      `select (select count(*)::int from read.reservation
               where partner_id = $1 and state in ('reserved', 'submitted')) as pending,
              (select coalesce(max(pending_enrichments), 0) from read.api_key
               where partner_id = $1 and revoked_at is null and coalesce(expires_at, 'infinity') > $2) as "pendingLimit"`,
      [partnerId, new Date(now)],
    ),
  ]);
  return {
    pending: 0,
    pendingLimit: 0,
    ...pending.rows[0],
    reserved: new Map(used.rows.map((row) => [row.key_id, row.used])),
  };
}

/** A key that has used a share of its allowance. */
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
  const { rows } = await pool.query<Omit<UsedAllowance, 'day'>>(
    `with usable as (
       select partner_id, key_id, name, new_enrichments_per_day as limit, created_at from read.api_key
       where new_enrichments_per_day > 0 and revoked_at is null and coalesce(expires_at, 'infinity') > $2
         ${partnerId === null ? '' : 'and partner_id = $4'})
     select k.partner_id, k.key_id, k.name, u.used, k.limit
     from (select distinct partner_id from usable) p
     cross join lateral (${usedByKey('p.partner_id')}) u
     join usable k using (key_id)
     where u.used >= k.limit * $3::float8
     order by k.created_at`,
    [startOfDay(now), new Date(now), share, ...(partnerId === null ? [] : [partnerId])],
  );
  return rows.map((row) => ({ ...row, day: utcDay(now) }));
}
