import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../platform/config.ts';
import type { Logger } from '../../platform/log.ts';
import { createDirectoryProvider } from './directory-provider.ts';
import { type Mapping, mappingSchema } from './http-mapping.ts';
import { createHttpProvider } from './http-provider.ts';
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

/** Builds the providers in the configured order. @throws Error that names the variable and the fault */
export const buildChain = async (config: Config, log: Logger): Promise<Chain> => {
  const providers: (Provider & { close(): Promise<void> | void })[] = [];
  for (const name of config.ENRICHMENT_PROVIDERS) {
    providers.push(
      name === 'directory'
        ? await createDirectoryProvider(config.ENRICHMENT_DIRECTORY ?? SAMPLE, log)
        : createHttpProvider({
            url: config.ENRICHMENT_HTTP_URL ?? '',
            token: config.ENRICHMENT_HTTP_TOKEN,
            timeoutMs: config.ENRICHMENT_HTTP_TIMEOUT_MS,
            mapping: await readMapping(config.ENRICHMENT_HTTP_MAP),
          }),
    );
  }
  const slow = config.ENRICHMENT_PROVIDERS.filter((name) => name === 'http').length;
  return {
    providers,
    longestMs: slow * config.ENRICHMENT_HTTP_TIMEOUT_MS + OVERHEAD_MS,
    close: async () => {
      for (const provider of providers) await provider.close();
    },
  };
};

const readMapping = async (file: string | undefined): Promise<Mapping | null> => {
  if (file === undefined) return null;
  try {
    return mappingSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    throw new Error(`ENRICHMENT_HTTP_MAP ${file}: ${(error as Error).message}`);
  }
};
