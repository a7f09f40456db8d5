import { z } from 'zod';

/** A saved result is forgotten on this day after it was last asked for (architecture, Streams). */
export const RESULT_KEPT_DAYS = 400;

/** Company and Network as the spec names their fields; every one may be unknown. */
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

/** What is known of an address once an enrichment has completed; shared by all partners. */
export const savedResultSchema = z.object({
  ip: z.string(),
  match_type: matchTypeSchema,
  network: networkSchema,
  company: companySchema.nullable(),
  /** The providers whose answers stand in the result, in the chain's order. Not shown in the API. */
  sources: z.array(z.string()),
  enriched_at: z.iso.datetime(),
  fresh_until: z.iso.datetime(),
  /** Not `company`, and some provider could not contribute: a POST requests the rest. */
  needs_company_enrichment: z.boolean(),
});
export type SavedResult = z.output<typeof savedResultSchema>;

/** The same result with its times cut to their UTC days: fresh for up to a day less, never for longer. */
export const toUtcDays = (result: SavedResult): SavedResult => ({
  ...result,
  enriched_at: startOfDay(result.enriched_at),
  fresh_until: startOfDay(result.fresh_until),
});

const startOfDay = (instant: string): string => `${instant.slice(0, 10)}T00:00:00.000Z`;

const emptyNetwork: Network = networkSchema.parse({});
const emptyCompany: Company = companySchema.parse({});

/** One provider's completed answer: what it knows of an address. */
export interface ProviderRecord {
  readonly match_type: MatchType;
  readonly network: Network | null;
  readonly company: Company | null;
  /** The provider's own term of freshness, days. */
  readonly fresh_for_days: number | null;
}

export type ProviderAnswer =
  | { readonly provider: string; readonly record: ProviderRecord }
  /** Failed or timed out: says nothing about the address. */
  | { readonly provider: string; readonly failure: string };

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

/** Whether any field is known: an object of nulls is no data. */
const hasFields = (fields: object | null): boolean =>
  fields !== null && Object.values(fields).some((value) => value !== null);

export type Combined =
  | { readonly outcome: 'result'; readonly result: SavedResult }
  | { readonly outcome: 'failed'; readonly failures: readonly { provider: string; reason: string }[] };

/**
 * Makes one result of a chain's answers (decisions, Enrichment providers): the best match leads, its fields
 * come first, gaps are filled from the others in order. A failure beside data makes the result incomplete;
 * beside none it is a failed attempt. A refresh (`earlier` given) never makes a result poorer: unless every
 * provider answered, it must find a company, or count as failed; an earlier company's fields then stay, others fill
 * the gaps.
 * `at` in milliseconds.
 */
export const combineAnswers = (
  ip: string,
  answers: readonly ProviderAnswer[],
  earlier: SavedResult | null,
  at: number,
): Combined => {
  const failures = answers.flatMap((a) =>
    'failure' in a ? [{ provider: a.provider, reason: a.failure }] : [],
  );
  const known = answers
    .flatMap((a) => ('record' in a ? [a] : []))
    .sort((a, b) => RANK[a.record.match_type] - RANK[b.record.match_type]);
  const lead = known[0];
  const match = lead?.record.match_type ?? 'unclassified';
  const anyData = known.some(({ record }) => hasData(record));
  if (failures.length > 0 && match !== 'company' && (!anyData || earlier !== null)) {
    return { outcome: 'failed', failures };
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
    },
  };
};

/** Whether the result is due for a refresh. `at` in milliseconds. */
export const isStale = (result: { readonly fresh_until: string }, at: number): boolean =>
  Date.parse(result.fresh_until) <= at;
