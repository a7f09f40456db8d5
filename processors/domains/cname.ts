import { plainName } from '../../domain/domains/hostname.ts';

/** The part of `dns.promises.Resolver` in use: it queries DNS servers only and never reads `/etc/hosts`. */
export interface CnameResolver {
  resolveCname(name: string): Promise<string[]>;
  cancel(): void;
}

/** Why a name does not point to the service: `last_error` of a domain (docs/domains.md). */
export type CnameError =
  | 'no_such_name'
  | 'no_cname'
  | 'points_elsewhere'
  | 'cname_loop'
  | 'cname_too_long'
  | 'dns_timeout'
  | 'dns_error';

/** Longer than any legitimate chain of CNAMEs. */
const MAX_HOPS = 8;

/**
 * Follows the CNAMEs of a name to the target. DNS failures get errors of their own, because they say nothing about the name.
 * @param target in the form of `plainName`
 * @param signal cancels the DNS queries; the result is then `dns_timeout`
 * @returns null if the name points to the target
 */
export const checkCname = async (
  resolver: CnameResolver,
  name: string,
  target: string,
  signal: AbortSignal,
): Promise<CnameError | null> => {
  const cancel = (): void => resolver.cancel();
  signal.addEventListener('abort', cancel);
  try {
    return await follow(resolver, name, target, signal);
  } finally {
    signal.removeEventListener('abort', cancel);
  }
};

const follow = async (
  resolver: CnameResolver,
  name: string,
  target: string,
  signal: AbortSignal,
): Promise<CnameError | null> => {
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
};

type NoCname = 'no_such_name' | 'no_cname' | 'dns_timeout' | 'dns_error';
const FAILURES: Readonly<Record<string, NoCname>> = {
  ENOTFOUND: 'no_such_name',
  ENODATA: 'no_cname',
  ETIMEOUT: 'dns_timeout',
  ECANCELLED: 'dns_timeout',
};

const cnameOf = async (
  resolver: CnameResolver,
  name: string,
): Promise<{ readonly name: string } | NoCname> => {
  try {
    // A name has at most one CNAME (RFC 1034 section 3.6.2).
    const [cname] = await resolver.resolveCname(name);
    return cname === undefined ? 'no_cname' : { name: plainName(cname) };
  } catch (error) {
    return FAILURES[(error as NodeJS.ErrnoException).code ?? ''] ?? 'dns_error';
  }
};
