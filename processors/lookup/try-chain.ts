import { combineAnswers, type ProviderAnswer, type ProviderRecord } from '../../domain/lookup/answers.ts';
import type { SavedResult } from '../../domain/lookup/result.ts';
import { NotAsked, type Provider, UNKNOWN } from './provider.ts';

/** What one provider says of an address. */
export interface TriedProvider {
  readonly provider: string;
  /** The match type of its record, `unknown`, `failed`, or `not_asked`. */
  readonly outcome: string;
  /** Why it failed or was not asked; null: it answered. */
  readonly reason: string | null;
  /** Whether its answer counts: the chain ends with the first company. */
  readonly counts: boolean;
  readonly duration_ms: number;
  /** The source's own answer; null: it has none. */
  readonly raw: unknown;
  readonly record: ProviderRecord | null;
}

export interface TriedChain {
  readonly ip: string;
  readonly providers: readonly TriedProvider[];
  /** What a first enrichment would save; null: it would be retried. */
  readonly result: SavedResult | null;
}

/**
 * Asks every provider of the chain about a canonical public address, also behind the first company, and combines the
 * answers as an enrichment does. Saves nothing. `at` in milliseconds.
 */
export const tryChain = async (
  chain: readonly Provider[],
  ip: string,
  { signal, at }: { readonly signal: AbortSignal; readonly at: number },
): Promise<TriedChain> => {
  const providers: TriedProvider[] = [];
  const answers: ProviderAnswer[] = [];
  let isEnded = false;
  for (const provider of chain) {
    const { tried, answer } = await tryOne(provider, ip, signal);
    providers.push({ ...tried, counts: !isEnded && tried.record !== null });
    if (!isEnded) answers.push(answer);
    isEnded ||= tried.outcome === 'company';
  }
  const combined = combineAnswers(ip, answers, null, at);
  return { ip, providers, result: combined.outcome === 'result' ? combined.result : null };
};

const tryOne = async (
  { name: provider, lookup }: Provider,
  ip: string,
  signal: AbortSignal,
): Promise<{ tried: Omit<TriedProvider, 'counts'>; answer: ProviderAnswer }> => {
  let raw: unknown = null;
  const started = performance.now();
  const duration = (): number => Math.round((performance.now() - started) * 10) / 10;
  try {
    const found = await lookup(ip, signal, {
      onRaw: (value) => {
        raw = value;
      },
    });
    const record = found ?? UNKNOWN;
    const outcome = found?.match_type ?? 'unknown';
    return {
      tried: { provider, outcome, reason: null, duration_ms: duration(), raw, record },
      answer: { provider, record },
    };
  } catch (error) {
    const reason = (error as Error).message;
    const isHeldBack = error instanceof NotAsked;
    const outcome = isHeldBack ? 'not_asked' : 'failed';
    return {
      tried: { provider, outcome, reason, duration_ms: duration(), raw, record: null },
      answer: isHeldBack ? { provider, heldBack: reason } : { provider, failure: reason },
    };
  }
};
