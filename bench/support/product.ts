import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openRuntime, type Runtime } from '../../bin/runtime.ts';
import { quiet } from '../../cli/capacity/workload.ts';
import { postmasterOf, removeDataFolder } from '../../cli/installation/data-folder.ts';
import { NO_CEILINGS } from '../../cli/installation/installation.ts';
import { cpuOf, cpuOfFamily } from '../../cli/installation/process-stats.ts';
import { loadConfig } from '../../platform/config/config.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { type Service, startService } from '../../test/support/service.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import { directoryOfBlocks } from './addresses.ts';
import type { Meters } from './load.ts';

/** `doorplate serve` in a separate process, durable, with its limits on and their ceilings high. */
export interface Product {
  readonly service: Service;
  readonly port: number;
  readonly keys: readonly string[];
  readonly meters: Meters;
  /** Waits until read models and processors have handled the whole store, and no enrichment is pending. */
  settled(): Promise<void>;
  /** Waits until read models and processors have handled the whole store. */
  followed(): Promise<void>;
  /** Works beside the server, as a command does. */
  beside<T>(work: (runtime: Runtime) => Promise<T>): Promise<T>;
  end(): Promise<void>;
}

export const KEY_LIMITS = { requests_per_second: 20_000, pending_enrichments: 100_000_000 };

export const startProduct = async (
  partners: number,
  more: Readonly<Record<string, string>> = {},
): Promise<Product> => {
  const files = makeTestFolder();
  const directory = join(files, 'directory.jsonl');
  await writeFile(directory, directoryOfBlocks());
  const env = { LOG_LEVEL: 'warn', ENRICHMENT_DIRECTORY: directory, ...NO_CEILINGS, ...more };
  const service = await startService({ env });
  let ending: Promise<void> | null = null;
  const end = (): Promise<void> => {
    ending ??= remove(service, files);
    return ending;
  };
  try {
    const keys: string[] = [];
    while (keys.length < partners) keys.push((await service.newKey(KEY_LIMITS)).api_key);
    const postmaster = postmasterOf(service.dataDir) as number;
    const beside: Product['beside'] = (work) => withRuntime(service.env, 'join', work);
    return {
      service,
      port: Number(new URL(service.url).port),
      keys,
      meters: { server: () => cpuOf(service.pid), PostgreSQL: () => cpuOfFamily(postmaster) },
      settled: () => beside((runtime) => quiet(runtime)),
      followed: () => beside((runtime) => quiet(runtime, 'work may wait')),
      beside,
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
};

const remove = async (service: Service, files: string): Promise<void> => {
  await service.terminate();
  await service.remove();
  await removeDataFolder(files);
};

/** Opens the stores of a data folder: `own` without a server, `join` beside one. */
export const withRuntime = async <T>(
  env: Readonly<Record<string, string>>,
  mode: 'own' | 'join',
  work: (runtime: Runtime) => Promise<T>,
): Promise<T> => {
  const log = createLogger({ level: 'warn', destination: 'stderr' });
  const runtime = await openRuntime(loadConfig({ ...env }), log, mode);
  try {
    return await work(runtime);
  } finally {
    await runtime.close();
  }
};
