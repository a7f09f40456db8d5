import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { BackendTimeout } from '../../http/errors/failures.ts';

const domainRow = z.object({
  domain_id: z.string(),
  tracker_id: z.string(),
  partner_id: z.string(),
  hostname: z.string(),
  needs_proof: z.boolean(),
  status: z.enum(['pending', 'active', 'failed']),
  created_at: z.string(),
  activated_at: z.string().nullable(),
  checked_at: z.string().nullable(),
  last_error: z.string().nullable(),
});
export type DomainRow = z.output<typeof domainRow>;

const rows = sql.fragment`
  select d.domain_id, d.tracker_id, d.partner_id, d.hostname, d.status, d.created_at, d.activated_at,
         l.looked_at as checked_at, d.last_error,
         d.status <> 'active' and (
           exists (select from read.domain o
                   where o.hostname = d.hostname and o.partner_id <> d.partner_id and o.status <> 'failed')
           or exists (select from read.domain_owner w
                      where w.hostname = d.hostname and w.partner_id <> d.partner_id)) as needs_proof
  from read.domain d left join work.domain_look l on l.domain_id = d.domain_id`;

/** A tracker's domains, failed ones too. */
export const listDomains = (db: DatabasePool, trackerId: string): Promise<readonly DomainRow[]> =>
  db.any(sql.type(domainRow)`
    ${rows} where d.tracker_id = ${trackerId} order by d.created_at, d.domain_id`);

/** The domains of all trackers of a partner. */
export const listDomainsOfPartner = (db: DatabasePool, partnerId: string): Promise<readonly DomainRow[]> =>
  db.any(sql.type(domainRow)`
    ${rows} where d.partner_id = ${partnerId} order by d.hostname`);

/** Whether a partner has as many domains, failed ones too, as its ceiling allows. */
export const hasAllDomains = (db: DatabasePool, partnerId: string): Promise<boolean> =>
  db.oneFirst(sql.type(z.object({ is_full: z.boolean() }))`
    select count(*) >= coalesce((select p.domains from read.partner p where p.partner_id = ${partnerId}), 100)
      as is_full
    from read.domain where partner_id = ${partnerId}`);

export interface DomainReads {
  readonly db: DatabasePool;
  /** Waits until the read models have all that the store has now; false after the time limit. */
  readonly caughtUp: () => Promise<boolean>;
}

/** One of them. @throws BackendTimeout rather than call unknown what may be there */
export const findDomain = async (
  { db, caughtUp }: DomainReads,
  trackerId: string,
  domainId: string,
): Promise<DomainRow | null> => {
  const read = () =>
    db.maybeOne(sql.type(domainRow)`
      ${rows} where d.domain_id = ${domainId} and d.tracker_id = ${trackerId}`);
  const row = await read();
  if (row !== null) return row;
  if (!(await caughtUp())) throw new BackendTimeout('the read models are behind');
  return read();
};

/** Returns the time of a domain's last DNS check (ISO 8601). */
export const readCheckedAt = (db: DatabasePool, domainId: string): Promise<string | null> =>
  db
    .maybeOne(sql.type(z.object({ looked_at: z.string().nullable() }))`
      select looked_at from work.domain_look where domain_id = ${domainId}`)
    .then((row) => row?.looked_at ?? null);
