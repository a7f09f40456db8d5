import { createHash } from 'node:crypto';
import type pg from 'pg';
import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { isoTime } from '../../domain/kernel/time.ts';
import { roleSchema } from '../../domain/partners/events.ts';
import type { ApiKey } from '../../http/contract/route.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { rowLoader, shortCache } from '../../platform/limits/loaders.ts';
import { columnsOf } from '../reads.ts';

const partnerRow = z.object({
  partner_id: z.string(),
  name: z.string(),
  created_at: z.string(),
  requests_per_second: z.number(),
  new_enrichments_per_day: z.number().nullable(),
  pending_enrichments: z.number(),
  keys: z.number(),
  domains: z.number(),
  company_signals: z.boolean(),
  /** null: active. A deleted partner is suspended too. */
  suspended_at: z.string().nullable(),
});
type PartnerRow = z.output<typeof partnerRow>;

const keyRow = z.object({
  key_id: z.string(),
  partner_id: z.string(),
  name: z.string(),
  requests_per_second: z.number(),
  new_enrichments_per_day: z.number().nullable(),
  pending_enrichments: z.number(),
  company_signals: z.boolean(),
  expires_at: z.string().nullable(),
  created_at: z.string(),
  revoked_at: z.string().nullable(),
});
export type KeyRow = z.output<typeof keyRow>;

const PARTNER = columnsOf(partnerRow);

const listedRow = partnerRow.extend({
  state: z.string(),
  live_keys: z.number(),
  trackers: z.number(),
});
type ListedPartner = z.output<typeof listedRow>;

/**
 * All partners at an instant (ISO 8601), the oldest first: deleted ones as long as their deletion is under way. `live_keys`: neither
 * revoked nor expired.
 */
export const listPartners = (db: DatabasePool, at: string): Promise<readonly ListedPartner[]> =>
  db.any(sql.type(listedRow)`
    select ${PARTNER},
           case when deleted_at is not null then 'deleted' when suspended_at is not null then 'suspended' else 'active' end as state,
           (select count(*)::int from read.api_key k
            where k.partner_id = p.partner_id and k.revoked_at is null and coalesce(k.expires_at, 'infinity') > ${at}) as live_keys,
           (select count(*)::int from read.tracker t
            where t.partner_id = p.partner_id and t.deleted_at is null) as trackers
    from read.partner p where ended_at is null order by created_at, name`);

/** The ids of all partners that ever were: a ledger outlives its partner. */
export const listPartnerIds = (db: DatabasePool): Promise<readonly string[]> =>
  db.anyFirst(sql.type(z.object({ partner_id: z.string() }))`
    select partner_id from read.partner order by created_at, name`);

/** By id or by name, whichever the operator has at hand; deleted ones not. */
export const findPartner = (db: DatabasePool, idOrName: string): Promise<PartnerRow | null> =>
  db.maybeOne(sql.type(partnerRow)`
    select ${PARTNER} from read.partner
    where (partner_id::text = ${idOrName} or name = ${idOrName}) and deleted_at is null`);

const formerRow = z.object({ partner_id: z.string(), name: z.string(), ended_at: z.string().nullable() });

/** The partner that was deleted last under an id or a name. */
export const findDeletedPartner = (
  db: DatabasePool,
  idOrName: string,
): Promise<z.output<typeof formerRow> | null> =>
  db.maybeOne(sql.type(formerRow)`
    select partner_id, name, ended_at from read.partner
    where (partner_id::text = ${idOrName} or name = ${idOrName}::text || ' (deleted ' || partner_id || ')')
      and deleted_at is not null
    order by deleted_at desc limit 1`);

/** Whether a partner was ever created, deleted ones included. */
export const hasPartners = async (db: DatabasePool): Promise<boolean> =>
  await db.oneFirst(
    sql.type(z.object({ any: z.boolean() }))`select exists (select from read.partner) as any`,
  );

const KEY = columnsOf(keyRow);

export const listKeys = (db: DatabasePool, partnerId: string): Promise<readonly KeyRow[]> =>
  db.any(sql.type(keyRow)`
    select ${KEY} from read.api_key where partner_id = ${partnerId} order by created_at`);

/** A page with ten thousand keys would block the event loop for a third of a second. */
const ENDED_LISTED = 50;

/**
 * The keys that open the service at an instant (ISO 8601), and the last `most` that were revoked and that expired: a script may
 * have made any number of these.
 */
export const listLatestKeys = (
  db: DatabasePool,
  partnerId: string,
  at: string,
  most = ENDED_LISTED,
): Promise<readonly KeyRow[]> =>
  db.any(sql.type(keyRow)`
    select * from (
      select ${KEY} from read.api_key
      where partner_id = ${partnerId} and revoked_at is null and coalesce(expires_at, 'infinity') > ${at}
      union all
      (select ${KEY} from read.api_key where partner_id = ${partnerId} and revoked_at is not null
       order by revoked_at desc limit ${most})
      union all
      (select ${KEY} from read.api_key where partner_id = ${partnerId} and revoked_at is null and expires_at <= ${at}
       order by expires_at desc limit ${most})) k
    order by created_at`);

export const findKey = (db: DatabasePool, keyId: string): Promise<KeyRow | null> =>
  db.maybeOne(sql.type(keyRow)`select ${KEY} from read.api_key where key_id = ${keyId}`);

/** PostgreSQL refuses a NUL, which a path may hold. */
const KEY_ID = /^[\w-]{1,100}$/;

/** A key of this partner by an id as a path has it. */
export async function findKeyOf(db: DatabasePool, partnerId: string, keyId: string): Promise<KeyRow | null> {
  const key = KEY_ID.test(keyId) ? await findKey(db, keyId) : null;
  return key?.partner_id === partnerId ? key : null;
}

const userRow = z.object({
  user_id: z.string(),
  partner_id: z.string(),
  name: z.string(),
  role: roleSchema,
  second_factor: z.boolean(),
  created_at: z.string(),
  removed_at: z.string().nullable(),
});
type UserRow = z.output<typeof userRow>;

/** The users of the dashboard, of one partner or (null) of all. */
export function listUsers(db: DatabasePool, partnerId: string | null): Promise<readonly UserRow[]> {
  const whose = partnerId === null ? sql.fragment`true` : sql.fragment`m.partner_id = ${partnerId}`;
  return db.any(sql.type(userRow)`
    select m.user_id, m.partner_id, m.name, m.role, f.user_id is not null as second_factor, m.created_at, m.removed_at
    from read.team_member m left join work.second_factor f using (user_id)
    where ${whose} order by m.created_at, m.name`);
}

const useRow = z.object({ key_id: z.string(), used_at: z.string() });

export type UsedKey = KeyRow & { readonly used_at: string | null };

/** Adds when each key was last seen on a request. */
export async function withUses(db: DatabasePool, keys: readonly KeyRow[]): Promise<readonly UsedKey[]> {
  const ids = keys.map(({ key_id }) => key_id);
  const rows = await db.any(sql.type(useRow)`
    select key_id, used_at from work.key_use where key_id = any(${sql.array(ids, 'text')})`);
  const uses = new Map(rows.map(({ key_id, used_at }) => [key_id, used_at]));
  return keys.map((key) => ({ ...key, used_at: uses.get(key.key_id) ?? null }));
}

/** Who may have changed or asked something: the partner's users, and the keys that `listLatestKeys` has. */
export async function listActors(db: DatabasePool, partnerId: string, at: string) {
  const [users, keys] = await Promise.all([listUsers(db, partnerId), listLatestKeys(db, partnerId, at)]);
  return [
    ...users.map(({ user_id, name }) => ({ kind: 'user', id: user_id, name })),
    ...keys.map(({ key_id, name }) => ({ kind: 'key', id: key_id, name })),
  ];
}

/** Keys of partners that are not suspended, whether expired or not. */
const CALLING_KEYS = `
  select hash, key_id, partner_id, name, requests_per_second, new_enrichments_per_day, pending_enrichments, company_signals,
         expires_at
  from read.api_key k
  where revoked_at is null
    and not exists (select from read.partner p where p.partner_id = k.partner_id and p.suspended_at is not null)`;

type CallingKeyRow = Omit<ApiKey, 'kind'> & { readonly expires_at: Date | null };

export interface CallingKeyDeps {
  readonly pool: pg.Pool;
  readonly clock: Clock;
}

/**
 * Finds a partner's key for a call in its name, by the rules of a call over HTTP. null: unknown, expired or revoked, or the partner is
 * suspended.
 */
export async function findCallingKey(
  { pool, clock }: CallingKeyDeps,
  { partner_id, key_id }: Pick<ApiKey, 'partner_id' | 'key_id'>,
): Promise<ApiKey | null> {
  if (!KEY_ID.test(key_id)) return null;
  const { rows } = await pool.query<CallingKeyRow & { hash: string }>(
    `${CALLING_KEYS} and partner_id = $1 and key_id = $2 and coalesce(expires_at, 'infinity') > $3`,
    [partner_id, key_id, new Date(clock.now())],
  );
  const [row] = rows;
  if (row === undefined) return null;
  const { hash: _, expires_at: __, ...key } = row;
  return { kind: 'key', ...key };
}

interface KnownKey {
  readonly key: ApiKey;
  /** Milliseconds. */
  readonly expiresAt: number;
}

const MAX_CACHED = 10_000;

/**
 * Finds the key behind a Bearer token, by its hash. Known keys are cached for less than half a second, so that a revocation or a
 * suspension of the partner holds everywhere within a second; unknown tokens are asked about each time, together. null: unknown,
 * expired or revoked, or its partner is suspended.
 */
export function createAuthenticate(
  pool: pg.Pool,
  clock: Clock,
): (token: string) => ApiKey | null | Promise<ApiKey | null> {
  const findRow = rowLoader(async (hashes) => {
    const { rows } = await pool.query<CallingKeyRow & { hash: string }>({
      name: 'calling_keys',
      text: `${CALLING_KEYS} and hash = any ($1)`,
      values: [hashes],
    });
    return new Map(rows.map(({ hash, ...row }) => [hash, row]));
  });

  async function findKey(token: string): Promise<KnownKey | null> {
    const row = await findRow(createHash('sha256').update(token).digest('hex'));
    if (row === null) return null;
    const { expires_at, ...key } = row;
    return { key: { kind: 'key', ...key }, expiresAt: expires_at?.getTime() ?? Number.POSITIVE_INFINITY };
  }

  const keys = shortCache(findKey, { max: MAX_CACHED, isCached: (known) => known !== null });

  const unexpired = (known: KnownKey | null): ApiKey | null =>
    known && known.expiresAt > clock.now() ? known.key : null;

  return (token) => {
    const known = keys.find(token);
    return known instanceof Promise ? known.then(unexpired) : unexpired(known);
  };
}

/** A key that can be used and ends at `expires_at`. */
export interface ExpiringKey {
  readonly partner_id: string;
  readonly key_id: string;
  readonly name: string;
  readonly expires_at: string;
}

/** Lists keys that end within `withinMs` of `now` (milliseconds): of one partner, or (null) of all. */
export async function listExpiringKeys(
  pool: pg.Pool,
  partnerId: string | null,
  withinMs: number,
  now: number,
): Promise<ExpiringKey[]> {
  const { rows } = await pool.query<Omit<ExpiringKey, 'expires_at'> & { expires_at: Date }>(
    `select partner_id, key_id, name, expires_at from read.api_key
     where revoked_at is null and expires_at > $1 and expires_at <= $2
       ${partnerId === null ? '' : 'and partner_id = $3'}
     order by expires_at`,
    [new Date(now), new Date(now + withinMs), ...(partnerId === null ? [] : [partnerId])],
  );
  return rows.map((row) => ({ ...row, expires_at: isoTime(row.expires_at.getTime()) }));
}
