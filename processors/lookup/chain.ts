import { fileURLToPath } from 'node:url';
import { type Config, ConfigError } from '../../platform/config/config.ts';
import type { ProviderSettings } from '../../platform/config/provider-settings.ts';
import type { Logger } from '../../platform/telemetry/log.ts';
import { createApiProvider, needsToken } from './api-provider.ts';
import { createDatabaseProvider } from './database-provider.ts';
import { createDirectoryProvider } from './directory-provider.ts';
import { type Guard, guardProvider } from './guarded-provider.ts';
import { createHttpProvider } from './http-provider.ts';
import { readPreset } from './presets.ts';
import type { Provider } from './provider.ts';

/** A few well-known public ranges, so that the first lookup of a new installation finds a company. */
const SAMPLE = fileURLToPath(new URL('./providers/data/directory.sample.jsonl', import.meta.url));
const OVERHEAD_MS = 2_000;

export interface Chain {
  readonly providers: readonly Provider[];
  /** Time limit of the whole chain, milliseconds. */
  readonly longestMs: number;
  close(): Promise<void>;
}

type ReloadOutcome = 'reloaded' | 'failed';

export interface ChainDeps {
  readonly log: Logger;
  /** Limits the calls of providers behind HTTP. */
  readonly guard: Omit<Guard, 'log'>;
  readonly onReload?: (provider: string, outcome: ReloadOutcome) => void;
}

type OpenProvider = Provider & { close(): Promise<void> | void };

/** Builds the providers in the configured order. @throws Error that names the variable and the fault */
export const buildChain = async (
  { providers: settings }: Pick<Config, 'providers'>,
  { log, guard, onReload = () => undefined }: ChainDeps,
): Promise<Chain> => {
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
};

/** A call with a rate may wait as long as it may take. */
const longestMs = (settings: ProviderSettings): number => {
  if (!('timeoutMs' in settings)) return 0;
  return settings.requestsPerSecond === null ? settings.timeoutMs : 2 * settings.timeoutMs;
};

const openProvider = async (
  settings: ProviderSettings,
  log: Logger,
  onReload: (outcome: ReloadOutcome) => void,
): Promise<OpenProvider> => {
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
};
