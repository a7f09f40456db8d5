import { type Named, profileName } from '../kernel/profile.ts';

/** What the clues of one e-mail domain come to. */
export interface SeenDomain {
  readonly domain: string;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  readonly observations: number;
  readonly submitted_observations: number;
  readonly observed_visits: number;
  readonly sites: number;
}

/** The saved profiles whose website has a host name: none, one, or several. */
export type Profile<Company> = Company | 'several' | null;

/**
 * Reasons for caution (decisions, CompanySignals), in this order.
 * @param isSame whether the matched company is the one that the lookup found; null: it found none
 */
const flagsOf = (seen: SeenDomain, profile: Profile<object>, isSame: boolean | null): string[] => [
  ...(seen.submitted_observations === 0 ? ['field_only'] : []),
  ...(profile === null ? ['unmatched_domain'] : []),
  ...(profile === 'several' ? ['ambiguous_domain'] : []),
  ...(profile !== null && profile !== 'several' && isSame === false ? ['differs_from_lookup'] : []),
  ...(seen.observations === 1 ? ['single_observation'] : []),
];

/** Spec, CompanyCandidate. `found`: the company that the lookup found, with the host name of its website. */
export const candidateOf = <Company extends Named>(
  seen: SeenDomain,
  profile: Profile<Company>,
  found: { readonly company: Named; readonly host: string | null } | null,
) => {
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
};

const isNamedAlike = (one: Named, other: Named): boolean =>
  profileName(one) !== '' && profileName(one) === profileName(other);
