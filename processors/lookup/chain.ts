import { fileURLToPath } from 'node:url';
import { type Config, ConfigError } from '../../platform/config.ts';
import type { Logger } from '../../platform/log.ts';
import type { ProviderSettings } from '../../platform/provider-settings.ts';
import { createApiProvider, needsToken } from './api-provider.ts';
import { createDatabaseProvider } from './database-provider.ts';
import { createDirectoryProvider } from './directory-provider.ts';
import { createHttpProvider } from './http-provider.ts';
import { readPreset } from './presets.ts';
import type { Provider } from './provider.ts';

/** A few well-known public ranges, so that the first lookup of a new installation finds a company. */
const SAMPLE = fileURLToPath(new URL('../../data/directory.sample.jsonl', import.meta.url));
const OVERHEAD_MS = 2_000;

export interface Chain {
  readonly providers: readonly Provider[];
  /** Time limit of the whole chain, milliseconds. */
  readonly longestMs: number;
  close(): Promise<void>;
}

export type ReloadOutcome = 'reloaded' | 'failed';

type OpenProvider = Provider & { close(): Promise<void> | void };

/** Builds the providers in the configured order. @throws Error that names the variable and the fault */
export const buildChain = async (
  { providers: settings }: Pick<Config, 'providers'>,
  log: Logger,
  onReload: (provider: string, outcome: ReloadOutcome) => void = () => undefined,
): Promise<Chain> => {
  const providers: OpenProvider[] = [];
  for (const one of settings) {
    providers.push(await openProvider(one, log, (outcome) => onReload(one.name, outcome)));
  }
  const waits = settings.map((one) => ('timeoutMs' in one ? one.timeoutMs : 0));
  return {
    providers,
    longestMs: waits.reduce((sum, ms) => sum + ms, OVERHEAD_MS),
    close: async () => {
      for (const provider of providers) await provider.close();
    },
  };
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
