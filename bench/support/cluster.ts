import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { quiet } from '../../cli/capacity/workload.ts';
import { postmasterOf, removeDataFolder } from '../../cli/installation/data-folder.ts';
import { NO_CEILINGS } from '../../cli/installation/installation.ts';
import { cpuOf, cpuOfFamily } from '../../cli/installation/process-stats.ts';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { type Service, startService } from '../../test/support/service.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import { directoryOfBlocks } from './addresses.ts';
import { KEY_LIMITS, type Product, withRuntime } from './product.ts';

/** Several processes on one PostgreSQL. */
export interface Cluster extends Product {
  readonly ports: readonly number[];
  readonly url: string;
  /** Process ids of those that only work. */
  readonly workers: readonly number[];
}

/** This number of processes of each role; `all`: one process with both. */
export type Size = number | 'all';

const CONNECTIONS = ['max_connections=400'];

/** PostgreSQL is the embedded one, durable, with room for their connections. */
export const startCluster = async (
  size: Size,
  partners: number,
  more: Readonly<Record<string, string>>,
  moreSettings: readonly string[] = [],
): Promise<Cluster> => {
  const folder = makeTestFolder();
  const log = createLogger({ level: 'warn', destination: 'stderr' });
  const postgres = await startEmbeddedPostgres({
    dataDir: folder,
    log,
    moreSettings: [...CONNECTIONS, ...moreSettings],
  });
  const services: Service[] = [];
  const end = async (): Promise<void> => {
    for (const service of services.splice(0).reverse()) {
      await service.terminate();
      await service.remove();
    }
    await postgres.stop();
    await removeDataFolder(folder);
  };
  try {
    const directory = join(folder, 'directory.jsonl');
    await writeFile(directory, directoryOfBlocks());
    const env = { LOG_LEVEL: 'warn', ENRICHMENT_DIRECTORY: directory, ...NO_CEILINGS, ...more };
    const roles =
      size === 'all'
        ? (['all'] as const)
        : [...Array(size).fill('workers' as const), ...Array(size).fill('api' as const)];
    for (const role of roles) services.push(await startService({ role, databaseUrl: postgres.url, env }));
    const answering = services.filter((_, nth) => roles[nth] !== 'workers');
    const [service] = answering;
    if (service === undefined) throw new Error('no process serves the API');
    const keys: string[] = [];
    while (keys.length < partners) keys.push((await service.newKey(KEY_LIMITS)).api_key);
    const postmaster = postmasterOf(folder) as number;
    const beside: Product['beside'] = (work) => withRuntime(service.env, 'join', work);
    return {
      service,
      url: postgres.url,
      workers: services.filter((_, nth) => roles[nth] === 'workers').map(({ pid }) => pid),
      ports: answering.map(({ url }) => Number(new URL(url).port)),
      port: Number(new URL(service.url).port),
      keys,
      meters: {
        server: () => services.reduce((sum, { pid }) => sum + cpuOf(pid), 0),
        PostgreSQL: () => cpuOfFamily(postmaster),
      },
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
