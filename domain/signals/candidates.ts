import { type Named, profileName } from '../kernel/profile.ts';

/** The combined clues of one e-mail domain. */
export interface SeenDomain {
  readonly domain: string;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  readonly observations: number;
  readonly submitted_observations: number;
  readonly observed_visits: number;
  readonly sites: number;
}

/** Saved profiles whose website has the host name: none, one, or several. */
export type Profile<Company> = Company | 'several' | null;

/**
 * Lists reasons for caution (contract, Company signals 2), in this order.
 * @param isSame whether the matched company is that of the lookup; null: the lookup found none
 */
const flagsOf = (seen: SeenDomain, profile: Profile<object>, isSame: boolean | null): string[] => [
  ...(seen.submitted_observations === 0 ? ['field_only'] : []),
  ...(profile === null ? ['unmatched_domain'] : []),
  ...(profile === 'several' ? ['ambiguous_domain'] : []),
  ...(profile !== null && profile !== 'several' && isSame === false ? ['differs_from_lookup'] : []),
  ...(seen.observations === 1 ? ['single_observation'] : []),
];

/** Makes a candidate. `found`: the lookup's company with the host name of its website. */
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
