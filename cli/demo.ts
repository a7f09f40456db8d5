import { lstatSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { z } from 'zod';
import { settingsIn } from '../platform/config/config.ts';
import { DEMO_MARK, openDataFolder } from '../platform/config/data-folder.ts';
import { identify, isAlive, until } from '../platform/embedded/processes.ts';
import { createLogger } from '../platform/telemetry/log.ts';
import { removeDataFolder } from './installation/data-folder.ts';
import { freePort } from './installation/free-port.ts';
import { Refused } from './session.ts';

const FOLDER = '.doorplate-demo';
const LOOPBACK = '127.0.0.1/32';
const STOP_MS = 12_000;
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Adds `doorplate demo`. */
export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description(`run a throw-away installation with a month of a made-up customer, in ${FOLDER}`)
    .option('--remove', 'stop the demo and remove its folder', false)
    .action(({ remove }: { remove: boolean }) => (remove ? removeDemo() : runDemo()));
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function runDemo(): Promise<void> {
  const begun = performance.now();
  const ignored = settingsIn(process.env);
  // Hidden from libraries too, which read some of them on their own.
  for (const name of ignored) delete process.env[name];
  if (ignored.length > 0) say(`Ignored, because a demo takes no settings: ${ignored.join(', ')}`);
  const earlier = readMark(FOLDER);
  if (earlier !== null && isAlive(earlier.process))
    throw new Refused(`a demo runs here: ${earlier.dashboard ?? 'not ready yet'} (doorplate demo --remove)`);
  if (earlier !== null) await removeDataFolder(earlier.folder);
  const folder = openDataFolder(FOLDER);
  writeMark(folder, null);
  // What is written in part is of no use.
  const abandon = (): void => void removeDataFolder(folder).finally(() => process.exit(1));
  for (const signal of SIGNALS) process.once(signal, abandon);
  say('Writing a month of a made-up customer …');
  const lines = await start(folder).catch(async (error: unknown) => {
    await removeDataFolder(folder);
    throw error;
  });
  for (const signal of SIGNALS) process.off(signal, abandon);
  say(`The demo is ready after ${Math.round((performance.now() - begun) / 1_000)} s.

${lines}

Companies, ISPs and visits are made up, and so is who has an address: the addresses themselves are real ones of their countries.
Nothing leaves this machine. Other commands work on it with DATA_DIR=${FOLDER}. Ctrl-C stops it, and
"doorplate demo --remove" also removes its folder.`);
}

/** Writes the history, and serves. @returns the addresses and the login */
async function start(folder: string): Promise<string> {
  const [port, opsPort, sitePort] = [await freePort(), await freePort(), await freePort()];
  const [service, site] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${sitePort}`];
  const env = {
    ...{ DATA_DIR: folder, PORT: `${port}`, OPS_PORT: `${opsPort}`, LOG_LEVEL: 'error' },
    ...{ WEBHOOK_ALLOW_HTTP: '1', WEBHOOK_ALLOW_NETWORKS: LOOPBACK, WEBHOOK_ALLOW_PORTS: `${sitePort}` },
    ENRICHMENT_DIRECTORY: join(folder, 'directory.jsonl'),
  };
  // Lazily, because no other command needs the whole product.
  const { writeHistory } = await import('./demo/history.ts');
  const log = createLogger({ level: 'error', destination: 'stderr' });
  const { user, password, trackers, organisations } = await writeHistory(env, site, log);
  await (await import('./demo/site.ts')).startSite(sitePort, service, trackers, organisations);
  await (await import('../bin/serve.ts')).serve('all', env);
  writeMark(folder, `${service}/dashboard`);
  return `  dashboard  ${service}/dashboard
  login      ${user}
  password   ${password}
  a website  ${site}   (each visit of it appears in the dashboard)`;
}

async function removeDemo(): Promise<void> {
  const demo = readMark(FOLDER);
  if (demo === null) throw new Refused(`there is no demo in ${FOLDER}`);
  if (isAlive(demo.process)) {
    process.kill(demo.process.pid, 'SIGTERM');
    if (!(await until(() => !isAlive(demo.process), STOP_MS))) process.kill(demo.process.pid, 'SIGKILL');
  }
  // By its path: a demo that was not ready yet has removed it itself.
  await removeDataFolder(demo.folder);
  say(`The demo in ${FOLDER} is stopped and removed.`);
}

const markSchema = z.object({
  /** The folder's own path: the process is none of a copy's. */
  folder: z.string(),
  /** A later process with the same pid has another start. */
  process: z.object({ pid: z.int().positive(), started: z.string() }),
  /** null: not ready yet. */
  dashboard: z.url().nullable(),
});
type Mark = z.output<typeof markSchema>;

/** Writes the mark of this process. `folder`: its real path. */
function writeMark(folder: string, dashboard: string | null): void {
  const mark = markSchema.parse({ folder, process: identify(process.pid), dashboard });
  writeFileSync(join(folder, DEMO_MARK), `${JSON.stringify(mark)}\n`, { mode: 0o600 });
}

/** Reads the mark of the folder; null: there is no folder. @throws Refused where it has no mark, or that of another folder */
function readMark(folder: string): Mark | null {
  const status = lstatSync(folder, { throwIfNoEntry: false });
  if (status === undefined) return null;
  try {
    const mark = markSchema.parse(JSON.parse(readFileSync(join(folder, DEMO_MARK), 'utf8')));
    if (status.isDirectory() && mark.folder === realpathSync(folder)) return mark;
  } catch {
    // Nothing that is a mark.
  }
  throw new Refused(`${folder} has no mark of a demo (${DEMO_MARK}), so it stays as it is`);
}
