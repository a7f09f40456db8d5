import { fileURLToPath } from 'node:url';
import { combineAnswers, type ProviderAnswer, type ProviderRecord } from '../../../domain/lookup/answers.ts';
import type { SavedResult } from '../../../domain/lookup/result.ts';
import { type Config, ConfigError } from '../../../platform/config/config.ts';
import type { ProviderSettings } from '../../../platform/config/provider-settings.ts';
import type { Logger } from '../../../platform/telemetry/log.ts';
import { createDatabaseProvider } from './database.ts';
import { createDirectoryProvider } from './directory.ts';
import { type Guard, guardProvider } from './guarded-provider.ts';
import { createApiProvider, createHttpProvider, needsToken } from './http.ts';
import { readPreset } from './mapping.ts';
import { askProvider, type Provider } from './provider.ts';

/** A few well-known public ranges, so that the first lookup of a new installation finds a company. */
const SAMPLE = fileURLToPath(new URL('./data/directory.sample.jsonl', import.meta.url));
const OVERHEAD_MS = 2_000;

export interface Chain {
  readonly providers: readonly Provider[];
  /** Time limit of the whole chain, milliseconds. */
  readonly longestMs: number;
  close(): Promise<void>;
}

type ReloadOutcome = 'reloaded' | 'failed';

interface ChainDeps {
  readonly log: Logger;
  /** Limits the calls of providers behind HTTP. */
  readonly guard: Omit<Guard, 'log'>;
  readonly onReload?: (provider: string, outcome: ReloadOutcome) => void;
}

type OpenProvider = Provider & { close(): Promise<void> | void };

/** Builds the providers in the configured order. @throws Error that names the variable and the fault */
export async function buildChain(
  { providers: settings }: Pick<Config, 'providers'>,
  { log, guard, onReload = () => undefined }: ChainDeps,
): Promise<Chain> {
  const providers: OpenProvider[] = [];
  for (const one of settings) {
    const provider = await openProvider(one, log, (outcome) => onReload(one.name, outcome));
    const limits = 'timeoutMs' in one ? { ...one, maxWaitMs: one.timeoutMs } : null;
    providers.push(limits === null ? provider : guardProvider(provider, limits, { ...guard, log }));
  }
  return {
    providers,
    longestMs: settings.reduce((sum, one) => sum + longestMs(one), OVERHEAD_MS),
    close: async () => {
      for (const provider of providers) await provider.close();
    },
  };
}

/** A call with a rate may wait as long as it may take. */
function longestMs(settings: ProviderSettings): number {
  if (!('timeoutMs' in settings)) return 0;
  return settings.requestsPerSecond === null ? settings.timeoutMs : 2 * settings.timeoutMs;
}

async function openProvider(
  settings: ProviderSettings,
  log: Logger,
  onReload: (outcome: ReloadOutcome) => void,
): Promise<OpenProvider> {
  const { name } = settings;
  switch (settings.kind) {
    case 'directory':
      return createDirectoryProvider(settings.file ?? SAMPLE, log, onReload);
    case 'file': {
      const { file, mapping, variables } = settings;
      const preset = mapping === null ? null : readPreset(mapping, variables.MAP);
      return createDatabaseProvider({ name, file, variable: variables.FILE, preset, log, onReload });
    }
    case 'api': {
      const { preset: file, url, token, timeoutMs, variables } = settings;
      const { request, ...preset } = readPreset(file, variables.MAP);
      const described = request ?? (url === undefined ? undefined : { url, headers: {} });
      if (described === undefined)
        throw new Error(`${variables.MAP} ${file}: has no request, and ${variables.URL} is not set`);
      if (token === undefined && needsToken(described)) {
        throw new ConfigError([`${variables.TOKEN} is not set, but ENRICHMENT_PROVIDERS names ${name}`]);
      }
      return createApiProvider({ name, preset: { ...preset, request: described }, url, token, timeoutMs });
    }
    case 'http': {
      const { url, token, timeoutMs, mapping, variables } = settings;
      return createHttpProvider({
        url,
        token,
        timeoutMs,
        mapping: mapping === null ? null : readPreset(mapping, variables.MAP).mapping,
      });
    }
  }
}

/** What one provider says of an address. */
interface TriedProvider {
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
export async function tryChain(
  chain: readonly Provider[],
  ip: string,
  { signal, at }: { readonly signal: AbortSignal; readonly at: number },
): Promise<TriedChain> {
  const providers: TriedProvider[] = [];
  const answers: ProviderAnswer[] = [];
  let isEnded = false;
  for (const provider of chain) {
    let raw: unknown = null;
    const onRaw = (value: unknown): void => {
      raw = value;
    };
    const { answer, outcome, ms } = await askProvider(provider, ip, signal, { onRaw });
    const record = 'record' in answer ? answer.record : null;
    const reason = 'failure' in answer ? answer.failure : 'heldBack' in answer ? answer.heldBack : null;
    const duration_ms = Math.round(ms * 10) / 10;
    const counts = !isEnded && record !== null;
    providers.push({ provider: provider.name, outcome, reason, counts, duration_ms, raw, record });
    if (!isEnded) answers.push(answer);
    isEnded ||= outcome === 'company';
  }
  const combined = combineAnswers(ip, answers, null, at);
  return { ip, providers, result: combined.outcome === 'result' ? combined.result : null };
}
