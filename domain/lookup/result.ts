import { z } from 'zod';
import { shownText } from '../kernel/visibility.ts';

/** Days after its last use on which a saved result is forgotten (docs/architecture.md, Rules of the streams). */
export const RESULT_KEPT_DAYS = 400;

/** Company and Network fields as the API names them; any may be unknown. */
const text = shownText().nullable().default(null);
const amount = z.union([shownText(), z.int()]).nullable().default(null);

export const companySchema = z.object({
  name: text,
  website: text,
  brand_name: text,
  linkedin_url: text,
  industry: text,
  industry_subcategory: text,
  revenue_band: text,
  naics_code: text,
  sic_code: text,
  city: text,
  region: text,
  postal_code: text,
  country_code: text,
  country_name: text,
  employees: amount,
  annual_revenue: amount,
});
export type Company = z.output<typeof companySchema>;

export const networkSchema = z.object({
  connection_type: text,
  audience_type: text,
  audience_group: text,
  detail_level: text,
  is_isp: z.boolean().nullable().default(null),
});
export type Network = z.output<typeof networkSchema>;

/** A company, or a network, of which no field is known. */
export const UNKNOWN_COMPANY: Company = companySchema.parse({});
export const UNKNOWN_NETWORK: Network = networkSchema.parse({});

/** Fills in as null the fields that results lack which older releases stored. No schema is applied, because every saved lookup is read so. */
export const withAllFields = <Result extends { company: Company | null; network: Network }>(
  result: Result,
): Result => ({
  ...result,
  network: { ...UNKNOWN_NETWORK, ...result.network },
  company: result.company && { ...UNKNOWN_COMPANY, ...result.company },
});

export const matchTypeSchema = z.enum(['company', 'isp', 'unclassified']);
export type MatchType = z.output<typeof matchTypeSchema>;

/** The providers that releases before 0.3.0 knew. */
const ANSWERING_BEFORE: readonly string[] = ['directory', 'http'];

/** The result of a completed enrichment, shared by all partners. */
export const savedResultSchema = z.object({
  ip: z.string(),
  match_type: matchTypeSchema,
  network: networkSchema,
  company: companySchema.nullable(),
  /** Providers that contributed to the result, in the chain's order. Not shown in the API. */
  sources: z.array(shownText()),
  enriched_at: z.iso.datetime(),
  fresh_until: z.iso.datetime(),
  /** The match is not `company` and a provider failed: a POST requests the rest. */
  needs_company_enrichment: z.boolean(),
  /**
   * Providers that answered, in the chain's order, those that know nothing too. Results of releases before 0.3.0 lack it:
   * these asked `directory` and `http`. A release before 0.3.0 drops it from the snapshots that it makes.
   */
  answered_by: z.array(shownText()).default([...ANSWERING_BEFORE]),
});
export type SavedResult = z.output<typeof savedResultSchema>;

/** Truncates the result's times to UTC days, which makes it fresh for up to a day less. */
export const toUtcDays = (result: SavedResult): SavedResult => ({
  ...result,
  enriched_at: startOfDay(result.enriched_at),
  fresh_until: startOfDay(result.fresh_until),
});

const startOfDay = (instant: string): string => `${instant.slice(0, 10)}T00:00:00.000Z`;

/**
 * Returns whether a POST requests more: the match is not `company`, and a provider failed or is one of `configured` and was
 * not asked (contract, Lookup 8).
 */
export const isIncomplete = (
  result: Pick<SavedResult, 'match_type' | 'needs_company_enrichment' | 'answered_by'>,
  configured: readonly string[],
): boolean =>
  result.match_type !== 'company' &&
  (result.needs_company_enrichment || configured.some((provider) => !result.answered_by.includes(provider)));

/** Returns the result after its completion gave up: `failed`, the providers that were asked in vain, count as asked. */
export const afterGivingUp = (result: SavedResult, failed: readonly string[]): SavedResult => ({
  ...result,
  needs_company_enrichment: false,
  answered_by: [...new Set([...result.answered_by, ...failed])],
});

/** Returns whether the result is due for a refresh. `at` in milliseconds. */
export const isStale = (result: { readonly fresh_until: string }, at: number): boolean =>
  Date.parse(result.fresh_until) <= at;
