import { parsePublicAddress } from '../../domain/kernel/address.ts';
import type { ProviderAnswer, ProviderRecord } from '../../domain/lookup/answers.ts';
import type { ProviderOutcome } from '../../platform/provider-metrics.ts';

/** What a lookup tells beside its result, and on whose behalf it is made. */
export interface LookupOptions {
  /** Called with the source's own answer before it is mapped. */
  readonly onRaw?: ((raw: unknown) => void) | undefined;
  /** On whose behalf it is asked; the call takes the turn of any of them. Omitted: for a command. */
  readonly askers?: readonly string[] | undefined;
  /** Awaited before the source is asked once more within the same lookup. @throws NotAsked */
  readonly again?: (() => Promise<void>) | undefined;
}

/** A source of company data. */
export interface Provider {
  readonly name: string;
  /**
   * Returns the record of a canonical public address; null if it is unknown.
   * @throws if the lookup failed or timed out
   */
  lookup(ip: string, signal: AbortSignal, options?: LookupOptions): Promise<ProviderRecord | null>;
}

/** The provider is down or refuses every call; other failures are of one address alone. */
export class Unavailable extends Error {}

/** The provider was held back, so that nothing is known of what it would have answered. */
export class NotAsked extends Error {}

/** The record of an address that a provider does not know. */
export const UNKNOWN: ProviderRecord = {
  match_type: 'unclassified',
  network: null,
  company: null,
  fresh_for_days: null,
};

export interface ChainNotes {
  /** Called for each provider that was asked or held back. `ms`: duration of the call. */
  asked(provider: string, outcome: ProviderOutcome, ms: number): void;
}

interface ChainOptions {
  readonly answered?: readonly string[];
  readonly notes?: ChainNotes;
  readonly askers?: readonly string[];
}

/**
 * Asks the providers in order until one answers `company` (contract, Providers 1). A failure is recorded as
 * an answer, which never means that there is no company. No provider is asked about an address that is not public.
 * `answered`: providers that are known to know nothing. `askers`: on whose behalf they are asked.
 */
export const askChain = async (
  chain: readonly Provider[],
  ip: string,
  signal: AbortSignal,
  { answered = [], notes, askers }: ChainOptions = {},
): Promise<ProviderAnswer[]> => {
  // An address may have been public in the release that accepted it.
  if (parsePublicAddress(ip) === null) return chain.map(({ name }) => ({ provider: name, record: UNKNOWN }));
  const answers: ProviderAnswer[] = [];
  for (const { name: provider, lookup } of chain) {
    if (answered.includes(provider)) {
      answers.push({ provider, record: UNKNOWN });
      continue;
    }
    const started = performance.now();
    const note = (outcome: ProviderOutcome): void =>
      notes?.asked(provider, outcome, performance.now() - started);
    try {
      const found = await lookup(ip, signal, { askers });
      note(found?.match_type ?? 'unknown');
      answers.push({ provider, record: found ?? UNKNOWN });
      if (found?.match_type === 'company') break;
    } catch (error) {
      const failure = error instanceof Error ? error.message : String(error);
      const heldBack = error instanceof NotAsked;
      note(heldBack ? 'not_asked' : 'failed');
      answers.push({ provider, failure, ...(heldBack && { asked: false }) });
    }
  }
  return answers;
};
