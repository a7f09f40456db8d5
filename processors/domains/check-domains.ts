import type pg from 'pg';
import type { Logger } from 'pino';
import { createNamesBatcher, type NamesBatcher, recordCheck } from '../../commands/domains/manage-domains.ts';
import { ownContext } from '../../commands/handle.ts';
import { domainStream, needsProof, plainName } from '../../domain/domains/hostname.ts';
import { aheadAfter } from '../../domain/kernel/time.ts';
import { type Claim, type ClaimLoop, type DueAttempts, startClaimLoop } from '../claims.ts';
import type { ProcessorDeps } from '../deps.ts';

/** The part of `dns.promises.Resolver` in use: it queries DNS servers only and never reads `/etc/hosts`. */
interface CnameResolver {
  resolveCname(name: string): Promise<string[]>;
  cancel(): void;
}

type NoCname = 'no_such_name' | 'no_cname' | 'dns_timeout' | 'dns_error';
/** Why a name does not point to the service: `last_error` of a domain (docs/domains.md). */
type CnameError = NoCname | 'points_elsewhere' | 'cname_loop' | 'cname_too_long';

/** Longer than any legitimate chain of CNAMEs. */
const MAX_HOPS = 8;

/**
 * Follows the CNAMEs of a name to the target. DNS failures get errors of their own, because they say nothing about the name.
 * @param target in the form of `plainName`
 * @param signal cancels the DNS queries; the result is then `dns_timeout`
 * @returns null if the name points to the target
 */
export async function checkCname(
  resolver: CnameResolver,
  name: string,
  target: string,
  signal: AbortSignal,
): Promise<CnameError | null> {
  signal.addEventListener('abort', () => resolver.cancel(), { once: true });
  const seen = [plainName(name)];
  for (let at = seen[0] ?? '', hops = 0; ; hops += 1) {
    if (signal.aborted) return 'dns_timeout';
    const next = await cnameOf(resolver, at);
    if (next === 'no_such_name' || next === 'no_cname') return hops === 0 ? next : 'points_elsewhere';
    if (next === 'dns_timeout' || next === 'dns_error') return next;
    at = next.name;
    if (at === target) return null;
    if (seen.includes(at)) return 'cname_loop';
    if (hops + 1 === MAX_HOPS) return 'cname_too_long';
    seen.push(at);
  }
}

const FAILURES: Readonly<Record<string, NoCname>> = {
  ENOTFOUND: 'no_such_name',
  ENODATA: 'no_cname',
  ETIMEOUT: 'dns_timeout',
  ECANCELLED: 'dns_timeout',
};

async function cnameOf(resolver: CnameResolver, name: string): Promise<{ readonly name: string } | NoCname> {
  try {
    // A name has at most one CNAME (RFC 1034 section 3.6.2).
    const [cname] = await resolver.resolveCname(name);
    return cname === undefined ? 'no_cname' : { name: plainName(cname) };
  } catch (error) {
    return FAILURES[(error as NodeJS.ErrnoException).code ?? ''] ?? 'dns_error';
  }
}

/** Ownership proof of a host name: a TXT record that holds the partner's token. */

interface TxtResolver extends Pick<CnameResolver, 'cancel'> {
  resolveTxt(name: string): Promise<string[][]>;
}

/**
 * Derives the token of a partner for a host name.
 * @param digest keyed digest, so that tokens cannot be guessed
 */
export const proofToken = (digest: (text: string) => string, hostname: string, partnerId: string): string =>
  digest(`domain proof ${partnerId} ${hostname}`);

/**
 * Checks whether the name's TXT record holds the token.
 * @param signal cancels the DNS query; the result is then false, as for any DNS failure
 */
export async function hasToken(
  resolver: TxtResolver,
  hostname: string,
  token: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (signal.aborted) return false;
  signal.addEventListener('abort', () => resolver.cancel(), { once: true });
  const records = await resolver.resolveTxt(`_doorplate.${hostname}`).catch(() => []);
  // DNS splits a long TXT value into several strings (RFC 7208 section 3.3).
  return records.some((pieces) => pieces.join('').trim() === token);
}

export interface DomainCheckOptions extends ProcessorDeps {
  readonly log: Logger;
  /** The service's host name in lower case, the target of every custom domain's CNAME. */
  readonly serviceHost: string;
  /** Creates one resolver per check: cancelling a check cancels all queries of its resolver. */
  readonly newResolver: () => Promise<CnameResolver & TxtResolver>;
  /** Returns the TXT token that proves the partner's ownership of the host name. */
  readonly tokenOf: (hostname: string, partnerId: string) => string;
  readonly onCheck: (outcome: CnameError | 'points_here') => void;
}

const MAX_CONCURRENT_CHECKS = 8;
/** Checks under way of one partner: silent DNS servers hold a slot longest, so one partner must not hold all slots. */
const MAX_CONCURRENT_CHECKS_OF_PARTNER = 2;
/** Time limit of the whole CNAME chain. */
const CHECK_MS = 8_000;
/** Allows for the append after the check and for clock skew between workers. */
const LEASE_MS = CHECK_MS + 15_000;

/** Checks the CNAMEs of custom domains when they are due. */
export function startDomainChecks(options: DomainCheckOptions): ClaimLoop {
  const { pool, clock, log, store } = options;
  const names = createNamesBatcher(store);
  return startClaimLoop({
    pool,
    clock,
    due: DUE,
    leaseMs: LEASE_MS,
    slots: MAX_CONCURRENT_CHECKS,
    perPartner: MAX_CONCURRENT_CHECKS_OF_PARTNER,
    attempt: async (claim, stopping) => {
      await makeCheck({ ...options, names }, claim, stopping);
      return null;
    },
    onFailed: (error, { item }) =>
      log.warn(
        { error: String(error), domain: item },
        'domain check was not recorded; retried after its lease',
      ),
  });
}

const DUE: DueAttempts = {
  name: 'claim_due_domain_looks',
  table: 'work.domain_look',
  key: 'domain_id',
  cycle: '0',
  attempt: 'w.looks + 1',
  dueAt: 'w.due_at',
  recordedAt: 'w.recorded_at',
  partner: 'coalesce(w.partner_id, w.domain_id)',
  mark: 'domain_check',
};

async function makeCheck(
  options: DomainCheckOptions & { readonly names: NamesBatcher },
  { item: domain_id, attempt }: Claim,
  stopping: AbortSignal,
): Promise<void> {
  const { names, pool, clock, serviceHost, newResolver, tokenOf, onCheck } = options;
  const looks = attempt - 1;
  const domain = await domainOf(pool, domain_id);
  if (domain === null) return;
  const { hostname, partner_id } = domain;
  const at = clock.now();
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(CHECK_MS)]);
  const resolver = await newResolver();
  const error = await checkCname(resolver, hostname, serviceHost, signal);
  const partner = error === null ? await partnerToProve(names, hostname, domain_id) : null;
  const proven = partner !== null && (await hasToken(resolver, hostname, tokenOf(hostname, partner), signal));
  // A check that the shutdown cut short has no result; it is due again after its lease.
  if (stopping.aborted && error !== null) return;
  const next = await recordCheck(
    names,
    { domain_id, hostname, at, error, proven },
    ownContext(clock, partner_id ?? undefined),
  );
  await pool.query(
    // `looks = $2` keeps only the first result when two workers ran the same check after a lost lease.
    `update work.domain_look set looks = looks + 1, looked_at = $3,
            (due_at, recorded_at) = row (case when due_at > $3 and recorded_at <= $5 then due_at else $4 end, $3)
     where domain_id = $1 and looks = $2`,
    [domain_id, looks, new Date(at), next === null ? null : new Date(next), new Date(aheadAfter(at))],
  );
  onCheck(error ?? 'points_here');
}

/** Returns the partner that must publish the TXT token; null if the CNAME is sufficient proof. */
const partnerToProve = (names: NamesBatcher, hostname: string, domainId: string): Promise<string | null> =>
  names.readState(domainStream(hostname), (name) => {
    const claim = name.claims.get(domainId);
    return claim?.status === 'pending' && needsProof(name, claim.partner_id) ? claim.partner_id : null;
  });

interface CheckedDomain {
  readonly hostname: string;
  /** null: scheduled by an earlier release. */
  readonly partner_id: string | null;
}

async function domainOf(pool: pg.Pool, domainId: string): Promise<CheckedDomain | null> {
  const { rows } = await pool.query<CheckedDomain>(
    'select hostname, partner_id from work.domain_look where domain_id = $1',
    [domainId],
  );
  return rows[0] ?? null;
}
