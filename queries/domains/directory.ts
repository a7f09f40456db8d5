import type pg from 'pg';
import { isHostname } from '../../domain/domains/hostname.ts';
import { rowLoader, shortCache } from '../../platform/limits/loaders.ts';

/** Finds out whom a host name collects for. */
export interface DomainDirectory {
  /** The tracker whose active domain a name in lower case was a moment ago; null: it was none's. */
  trackerOf(hostname: string): string | null | Promise<string | null>;
  /** To be called once a change of the name is in the read model. */
  forget(hostname: string): void;
}

/** Returns the partner for which a host name in lower case is active; null: none. */
export async function findDomainOwner(pool: pg.Pool, hostname: string): Promise<string | null> {
  if (!isHostname(hostname)) return null;
  const { rows } = await pool.query<{ partner_id: string }>({
    name: 'domain_owner',
    text: `select partner_id from read.domain where hostname = $1 and status = 'active'`,
    values: [hostname],
  });
  return rows[0]?.partner_id ?? null;
}

/**
 * Returns whether a certificate may be fetched for a name in lower case: it is active, and among as many of its partner's, the
 * longest active first, as the partner may have. A proxy in front may ask for each name that a TLS handshake has.
 */
export function createCertificateNames(pool: pg.Pool): (hostname: string) => Promise<boolean> {
  const find = rowLoader(async (hostnames) => {
    const { rows } = await pool.query<{ hostname: string }>({
      name: 'certificate_domains',
      text: `select d.hostname from read.domain d
             join read.tracker t on t.tracker_id = d.tracker_id and t.deleted_at is null
             join read.partner p on p.partner_id = d.partner_id
             where d.hostname = any ($1) and d.status = 'active' and p.domains > (
               select count(*) from read.domain o
               where o.partner_id = d.partner_id and o.status = 'active'
                 and (o.activated_at, o.domain_id) < (d.activated_at, d.domain_id))`,
      values: [hostnames],
    });
    return new Map(rows.map(({ hostname }) => [hostname, true]));
  });
  return async (hostname) => isHostname(hostname) && (await find(hostname)) !== null;
}

/** What is not found is not waited for: a name that was activated a moment ago has been pending for longer. */
export function createDomainDirectory(pool: pg.Pool): DomainDirectory {
  const find = rowLoader(async (hostnames) => {
    const { rows } = await pool.query<{ hostname: string; tracker_id: string }>({
      name: 'active_domains',
      text: `select d.hostname, d.tracker_id from read.domain d
             join read.tracker t on t.tracker_id = d.tracker_id and t.deleted_at is null
             where d.hostname = any ($1) and d.status = 'active'`,
      values: [hostnames],
    });
    return new Map(rows.map(({ hostname, tracker_id }) => [hostname, tracker_id]));
  });
  const domains = shortCache(find, { max: 1_000 });
  return {
    // Most Hosts that are not the service's own are addresses: nothing to ask about.
    trackerOf: (hostname) => (isHostname(hostname) ? domains.find(hostname) : null),
    forget: domains.forget,
  };
}

export interface DomainCounts {
  readonly active: number;
  readonly pending: number;
  readonly failed: number;
}

/** Counts the custom domains of all partners by status. */
export async function countDomains(pool: pg.Pool): Promise<DomainCounts> {
  const { rows } = await pool.query<DomainCounts>(
    `select count(*) filter (where status = 'active')::int as active,
            count(*) filter (where status = 'pending')::int as pending,
            count(*) filter (where status = 'failed')::int as failed
     from read.domain`,
  );
  return rows[0] ?? { active: 0, pending: 0, failed: 0 };
}

/** A domain that was active and does not point here any more, as far as the last DNS check says. */
export interface CeasedDomain {
  readonly domain_id: string;
  readonly partner_id: string;
  readonly tracker_id: string;
  readonly hostname: string;
  /** active: for less than three days. */
  readonly status: 'active' | 'failed';
  readonly last_error: string;
}

/** Lists them: of one partner, or (null) of all. */
export async function listCeasedDomains(pool: pg.Pool, partnerId: string | null): Promise<CeasedDomain[]> {
  const { rows } = await pool.query<CeasedDomain>(
    `select domain_id, partner_id, tracker_id, hostname, status, last_error from read.domain
     where activated_at is not null and last_error is not null and status in ('active', 'failed')
       ${partnerId === null ? '' : 'and partner_id = $1'}
     order by partner_id, hostname`,
    partnerId === null ? [] : [partnerId],
  );
  return rows;
}
