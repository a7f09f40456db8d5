import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';

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
});
export type PartnerRow = z.output<typeof partnerRow>;

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

const PARTNER = sql.fragment`partner_id, name, created_at, requests_per_second, new_enrichments_per_day,
  pending_enrichments, keys, domains, company_signals`;

export const listPartners = (db: DatabasePool): Promise<readonly PartnerRow[]> =>
  db.any(sql.type(partnerRow)`select ${PARTNER} from read.partner order by created_at, name`);

/** By id or by name, whichever the operator has at hand. */
export const findPartner = (db: DatabasePool, idOrName: string): Promise<PartnerRow | null> =>
  db.maybeOne(sql.type(partnerRow)`
    select ${PARTNER} from read.partner
    where partner_id::text = ${idOrName} or name = ${idOrName}`);

const KEY = sql.fragment`key_id, partner_id, name, requests_per_second, new_enrichments_per_day, pending_enrichments,
  company_signals, expires_at, created_at, revoked_at`;

export const listKeys = (db: DatabasePool, partnerId: string): Promise<readonly KeyRow[]> =>
  db.any(sql.type(keyRow)`
    select ${KEY} from read.api_key where partner_id = ${partnerId} order by created_at`);

/**
 * The keys that open the service at an instant (ISO 8601), and the last `most` that were revoked and that expired: a script may
 * have made any number of these.
 */
export const listLatestKeys = (
  db: DatabasePool,
  partnerId: string,
  at: string,
  most: number,
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

const userRow = z.object({
  user_id: z.string(),
  partner_id: z.string(),
  name: z.string(),
  created_at: z.string(),
  removed_at: z.string().nullable(),
});
export type UserRow = z.output<typeof userRow>;

/** The users of the dashboard, of one partner or (null) of all. */
export const listUsers = (db: DatabasePool, partnerId: string | null): Promise<readonly UserRow[]> =>
  db.any(sql.type(userRow)`
    select user_id, partner_id, name, created_at, removed_at
    from read.user_account where ${partnerId}::uuid is null or partner_id = ${partnerId}::uuid
    order by created_at, name`);

const useRow = z.object({ key_id: z.string(), used_at: z.string() });

/** When each of these keys was last seen on a request. */
export const listKeyUses = async (
  db: DatabasePool,
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, string>> => {
  const rows = await db.any(sql.type(useRow)`
    select key_id, used_at from work.key_use where key_id = any(${sql.array([...keyIds], 'text')})`);
  return new Map(rows.map(({ key_id, used_at }) => [key_id, used_at]));
};
