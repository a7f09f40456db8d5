import { z } from 'zod';
import 'zod-openapi';
import { count, timestamp } from './common.ts';
import { company, type ShownCompany } from './company.ts';

const companyCandidate = z
  .object({
    domain: z.string().meta({ description: 'An observed e-mail domain; never a whole address.' }),
    company: company.nullable().meta({
      description: 'The one profile whose website has this hostname; null without or with several.',
    }),
    verified: z.literal(false),
    evidence: z
      .enum(['submitted', 'field_only'])
      .meta({ description: 'submitted: a submit event was seen; field_only: an e-mail field was.' }),
    first_seen_at: timestamp,
    last_seen_at: timestamp,
    observations: count.meta({ description: 'Distinct captured events.' }),
    submitted_observations: count,
    observed_visits: count.meta({ description: 'Distinct known page runs; 0: none recorded.' }),
    sites: count.meta({ description: 'Distinct website and installation combinations.' }),
    flags: z.array(z.string()).meta({
      description:
        'Reasons for caution: `field_only`, `unmatched_domain`, `ambiguous_domain`, `differs_from_lookup`, ' +
        '`single_observation`. An empty list is not verification.',
    }),
  })
  .meta({ id: 'CompanyCandidate', description: "A clue, not proof of a visitor's employer." });

/** In lookup answers of keys that have the flag. */
export const companySignals = z
  .object({
    status: z
      .enum(['available', 'unavailable'])
      .meta({ description: 'unavailable: not checked. An empty available list: no eligible recent clues.' }),
    window_days: z.literal(30),
    truncated: z.boolean().meta({ description: 'More evidence may exist than is returned.' }),
    candidates: z.array(companyCandidate),
  })
  .meta({ id: 'CompanySignals', description: 'Optional clues from the last 30 days, for enabled keys.' });
export type CompanySignals = z.output<typeof companySignals>;

/** Clues could not be read, or not soon enough: that says nothing about the address. */
export const UNAVAILABLE_SIGNALS: CompanySignals = {
  status: 'unavailable',
  window_days: 30,
  truncated: false,
  candidates: [],
};

/**
 * Loads the clues about an address as the caller spelled it (null: none given), for a partner. `found`: the company of the lookup.
 * Soon and without an exception, `unavailable` if need be.
 */
export type CluesOf = (
  partnerId: string,
  ip: string | null,
  found: ShownCompany | null,
) => Promise<CompanySignals>;
