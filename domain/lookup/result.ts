import { z } from 'zod';

/** Days after its last use on which a saved result is forgotten (architecture, Streams). */
export const RESULT_KEPT_DAYS = 400;

/** Company and Network fields as the API names them; any may be unknown. */
const text = z.string().nullable().default(null);
const amount = z.union([z.string(), z.int()]).nullable().default(null);

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

export const matchTypeSchema = z.enum(['company', 'isp', 'unclassified']);
export type MatchType = z.output<typeof matchTypeSchema>;

/** The providers that releases before 0.3.0 knew. */
const ASKED_BEFORE: readonly string[] = ['directory', 'http'];

/** The result of a completed enrichment, shared by all partners. */
export const savedResultSchema = z.object({
  ip: z.string(),
  match_type: matchTypeSchema,
  network: networkSchema,
  company: companySchema.nullable(),
  /** Providers that contributed to the result, in the chain's order. Not shown in the API. */
  sources: z.array(z.string()),
  enriched_at: z.iso.datetime(),
  fresh_until: z.iso.datetime(),
  /** The match is not `company` and a provider failed: a POST requests the rest. */
  needs_company_enrichment: z.boolean(),
  /**
   * Providers that answered, in the chain's order, those that know nothing too. Results of releases before 0.3.0 lack it:
   * these asked `directory` and `http`. A release before 0.3.0 drops it from the snapshots that it makes.
   */
  asked: z.array(z.string()).default([...ASKED_BEFORE]),
});
export type SavedResult = z.output<typeof savedResultSchema>;

/** Truncates the result's times to UTC days, which makes it fresh for up to a day less. */
export const toUtcDays = (result: SavedResult): SavedResult => ({
  ...result,
  enriched_at: startOfDay(result.enriched_at),
  fresh_until: startOfDay(result.fresh_until),
});

const startOfDay = (instant: string): string => `${instant.slice(0, 10)}T00:00:00.000Z`;

const emptyNetwork: Network = networkSchema.parse({});
const emptyCompany: Company = companySchema.parse({});

/** A provider's record of an address. */
export interface ProviderRecord {
  readonly match_type: MatchType;
  readonly network: Network | null;
  readonly company: Company | null;
  /** The provider's own freshness period, days. */
  readonly fresh_for_days: number | null;
}

export type ProviderAnswer =
  | { readonly provider: string; readonly record: ProviderRecord }
  /** Failed or timed out, or was not even asked: no information about the address. */
  | { readonly provider: string; readonly failure: string; readonly asked?: false };

/** A provider that did not contribute to an attempt. `asked` false: it was held back. */
export interface ProviderFailure {
  readonly provider: string;
  readonly reason: string;
  readonly asked?: false | undefined;
}

const RANK: Record<MatchType, number> = { company: 0, isp: 1, unclassified: 2 };
const FRESH_DAYS: Record<MatchType, number> = { company: 30, isp: 7, unclassified: 7 };
const DAY_MS = 86_400_000;

const fill = <T extends object>(first: T, rest: readonly (T | null)[]): T => {
  const filled = { ...first };
  for (const other of rest) {
    for (const key in other) filled[key] ??= other[key];
  }
  return filled;
};

const hasData = (record: ProviderRecord): boolean =>
  record.match_type !== 'unclassified' || hasFields(record.network) || hasFields(record.company);

/** Returns whether any field is known: an object of nulls is no data. */
const hasFields = (fields: object | null): boolean =>
  fields !== null && Object.values(fields).some((value) => value !== null);

export type Combined =
  | {
      readonly outcome: 'result';
      readonly result: SavedResult;
      /** The provider whose company it is; null: the match is none. */
      readonly companyOf: string | null;
    }
  | {
      readonly outcome: 'failed';
      readonly failures: readonly ProviderFailure[];
      /** Providers that answered that they know nothing; the next attempt need not ask them. */
      readonly answered: readonly string[];
    };

/**
 * Combines a chain's answers (contract, Providers 1): the best match leads, and the others fill its gaps in order. A
 * failure beside data makes the result incomplete; without data the attempt fails. A refresh (`earlier` given) never loses
 * data: unless every provider answered, it must find a company or fail, an earlier company's fields stay, and other earlier
 * fields fill gaps. `at` in milliseconds.
 */
export const combineAnswers = (
  ip: string,
  answers: readonly ProviderAnswer[],
  earlier: SavedResult | null,
  at: number,
): Combined => {
  const failures = answers.flatMap((a) =>
    'failure' in a
      ? [{ provider: a.provider, reason: a.failure, ...(a.asked === false && { asked: a.asked }) }]
      : [],
  );
  const answered = answers.flatMap((a) => ('record' in a ? [a] : []));
  const known = answered.toSorted((a, b) => RANK[a.record.match_type] - RANK[b.record.match_type]);
  const lead = known[0];
  const match = lead?.record.match_type ?? 'unclassified';
  const anyData = known.some(({ record }) => hasData(record));
  if (failures.length > 0 && match !== 'company' && (!anyData || earlier !== null)) {
    const unknown = answered.filter(({ record }) => !hasData(record));
    return { outcome: 'failed', failures, answered: unknown.map(({ provider }) => provider) };
  }
  const kept = failures.length > 0 ? earlier : null;
  const inOrder = <T>(
    of: (from: { network: Network | null; company: Company | null }) => T,
  ): (T | null)[] => {
    const fresh = known.map(({ record }) => of(record));
    if (kept === null) return fresh;
    return kept.match_type === 'company' ? [of(kept), ...fresh] : [...fresh, of(kept)];
  };
  const network = fill(
    emptyNetwork,
    inOrder((from) => from.network),
  );
  const company = fill(
    emptyCompany,
    inOrder((from) => from.company),
  );
  const days = lead?.record.fresh_for_days ?? FRESH_DAYS[match];
  return {
    outcome: 'result',
    result: {
      ip,
      match_type: match,
      network,
      company: hasFields(company) ? company : null,
      sources: known.filter(({ record }) => hasData(record)).map(({ provider }) => provider),
      enriched_at: new Date(at).toISOString(),
      fresh_until: new Date(at + days * DAY_MS).toISOString(),
      needs_company_enrichment: failures.length > 0 && match !== 'company',
      asked: answered.map(({ provider }) => provider),
    },
    companyOf: match === 'company' ? (lead?.provider ?? null) : null,
  };
};

/**
 * Returns whether a POST requests more: the match is not `company`, and a provider failed or is one of `configured` and was
 * not asked (contract, Lookup 8).
 */
export const isIncomplete = (
  result: Pick<SavedResult, 'match_type' | 'needs_company_enrichment' | 'asked'>,
  configured: readonly string[],
): boolean =>
  result.match_type !== 'company' &&
  (result.needs_company_enrichment || configured.some((provider) => !result.asked.includes(provider)));

/** Returns the result after its completion gave up: `failed`, the providers that were asked in vain, count as asked. */
export const afterGivingUp = (result: SavedResult, failed: readonly string[]): SavedResult => ({
  ...result,
  needs_company_enrichment: false,
  asked: [...new Set([...result.asked, ...failed])],
});

/** Returns whether the result is due for a refresh. `at` in milliseconds. */
export const isStale = (result: { readonly fresh_until: string }, at: number): boolean =>
  Date.parse(result.fresh_until) <= at;
