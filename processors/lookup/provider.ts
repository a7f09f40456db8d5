import type { ProviderAnswer, ProviderRecord } from '../../domain/lookup/result.ts';

/** A source of company data. */
export interface Provider {
  readonly name: string;
  /**
   * Returns the record of a canonical public address; null if it is unknown.
   * @param onRaw called with the source's own answer before it is mapped
   * @throws if the lookup failed or timed out
   */
  lookup(ip: string, signal: AbortSignal, onRaw?: (raw: unknown) => void): Promise<ProviderRecord | null>;
}

const UNKNOWN: ProviderRecord = {
  match_type: 'unclassified',
  network: null,
  company: null,
  fresh_for_days: null,
};

/**
 * Asks the providers in order until one answers `company` (contract, Providers 1). A failure is recorded as
 * an answer, which never means that there is no company.
 */
export const askChain = async (
  chain: readonly Provider[],
  ip: string,
  signal: AbortSignal,
): Promise<ProviderAnswer[]> => {
  const answers: ProviderAnswer[] = [];
  for (const { name: provider, lookup } of chain) {
    try {
      const record = (await lookup(ip, signal)) ?? UNKNOWN;
      answers.push({ provider, record });
      if (record.match_type === 'company') break;
    } catch (error) {
      answers.push({ provider, failure: error instanceof Error ? error.message : String(error) });
    }
  }
  return answers;
};
