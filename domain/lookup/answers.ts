import { DAY } from '../kernel/time.ts';
import {
  type Company,
  type MatchType,
  type Network,
  type SavedResult,
  UNKNOWN_COMPANY,
  UNKNOWN_NETWORK,
} from './result.ts';

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
  /** Failed or timed out: no information about the address. */
  | { readonly provider: string; readonly failure: string }
  /** Held back by its rate, budget or circuit breaker: it was not asked. */
  | { readonly provider: string; readonly heldBack: string };

/** A provider that was asked and failed. */
export interface ProviderFailure {
  readonly provider: string;
  readonly reason: string;
}

const RANK: Record<MatchType, number> = { company: 0, isp: 1, unclassified: 2 };
const FRESH_DAYS: Record<MatchType, number> = { company: 30, isp: 7, unclassified: 7 };

function fill<T extends object>(first: T, rest: readonly (T | null)[]): T {
  const filled = { ...first };
  for (const other of rest) {
    for (const key in other) filled[key] ??= other[key];
  }
  return filled;
}

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
    }
  /** No provider failed, but the result needs one that was held back: nothing is known yet, and nothing is recorded. */
  | { readonly outcome: 'held_back'; readonly by: string };

/**
 * Combines a chain's answers (contract, Providers 1): the best match leads, and the others fill its gaps in order. A
 * failure beside data makes the result incomplete; without data the attempt fails. A refresh (`earlier` given) never loses
 * data: unless every provider answered, it must find a company or fail, an earlier company's fields stay, and other earlier
 * fields fill gaps. `at` in milliseconds.
 */
export function combineAnswers(
  ip: string,
  answers: readonly ProviderAnswer[],
  earlier: SavedResult | null,
  at: number,
): Combined {
  const failures = answers.flatMap((a) =>
    'failure' in a ? [{ provider: a.provider, reason: a.failure }] : [],
  );
  const heldBack = answers.find((a) => 'heldBack' in a);
  const lacksAnswers = failures.length > 0 || heldBack !== undefined;
  const answered = answers.flatMap((a) => ('record' in a ? [a] : []));
  const known = answered.toSorted((a, b) => RANK[a.record.match_type] - RANK[b.record.match_type]);
  const lead = known[0];
  const match = lead?.record.match_type ?? 'unclassified';
  const anyData = known.some(({ record }) => hasData(record));
  if (lacksAnswers && match !== 'company' && (!anyData || earlier !== null)) {
    if (failures.length === 0 && heldBack) return { outcome: 'held_back', by: heldBack.provider };
    const unknown = answered.filter(({ record }) => !hasData(record));
    return { outcome: 'failed', failures, answered: unknown.map(({ provider }) => provider) };
  }
  const earlierFields = lacksAnswers ? earlier : null;
  const inOrder = <T>(
    of: (from: { network: Network | null; company: Company | null }) => T,
  ): (T | null)[] => {
    const current = known.map(({ record }) => of(record));
    if (earlierFields === null) return current;
    return earlierFields.match_type === 'company'
      ? [of(earlierFields), ...current]
      : [...current, of(earlierFields)];
  };
  const network = fill(
    UNKNOWN_NETWORK,
    inOrder((from) => from.network),
  );
  const company = fill(
    UNKNOWN_COMPANY,
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
      fresh_until: new Date(at + days * DAY).toISOString(),
      needs_company_enrichment: lacksAnswers && match !== 'company',
      answered_by: answered.map(({ provider }) => provider),
    },
    companyOf: match === 'company' ? (lead?.provider ?? null) : null,
  };
}

/** Returns the providers whose answers stand in a result; a completion asks the others (contract, Lookup 8). */
export const answeredIn = ({
  needs_company_enrichment,
  sources,
  answered_by,
}: SavedResult): readonly string[] =>
  // A release before 0.3.0 did not record which of the providers failed.
  needs_company_enrichment ? sources : answered_by;

/**
 * Combines the answers of the providers that a fresh result lacked with that result, which comes before them. The freshness
 * stays that of the earlier answers unless a better match leads. `at` in milliseconds.
 */
export function completeResult(saved: SavedResult, answers: readonly ProviderAnswer[], at: number): Combined {
  const { match_type, network, company } = saved;
  const earlier = { provider: EARLIER, record: { match_type, network, company, fresh_for_days: null } };
  const combined = combineAnswers(saved.ip, [earlier, ...answers], saved, at);
  if (combined.outcome === 'held_back') return combined;
  if (combined.outcome === 'failed') {
    return { ...combined, answered: combined.answered.filter((name) => name !== EARLIER) };
  }
  const { result } = combined;
  const named = (providers: readonly string[], instead: readonly string[]): string[] => [
    ...new Set(providers.flatMap((name) => (name === EARLIER ? instead : [name]))),
  ];
  return {
    ...combined,
    result: {
      ...result,
      sources: named(result.sources, saved.sources),
      answered_by: named(result.answered_by, saved.answered_by),
      fresh_until: result.match_type === match_type ? saved.fresh_until : result.fresh_until,
    },
  };
}

/** Stands for the providers whose answers the saved result holds; no provider's name is empty. */
const EARLIER = '';
