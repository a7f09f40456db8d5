import { realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { serve } from '../bin/serve.ts';
import { settingsIn } from '../platform/config/config.ts';
import { isAlive, until } from '../platform/embedded/processes.ts';
import { createLogger } from '../platform/telemetry/log.ts';
import { writeHistory } from './demo/history.ts';
import { DEMO_MARK, makeMarkedFolder, readMark, writeMark } from './demo/mark.ts';
import { startSite } from './demo/site.ts';
import { removeDataFolder } from './installation/data-folder.ts';
import { freePort } from './installation/free-port.ts';
import { Refused } from './session.ts';

const FOLDER = '.doorplate-demo';
const STOP_MS = 12_000;

/** Adds `doorplate demo`. */
export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description(`start a throw-away installation with thirty days of a made-up customer, in ${FOLDER}`)
    .option('--remove', 'stop the demo and remove its folder', false)
    .action(({ remove }: { remove: boolean }) => (remove ? removeDemo(FOLDER) : startDemo(FOLDER)));
}

async function startDemo(folder: string): Promise<void> {
  const begun = performance.now();
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  ignoreSettings(say);
  const mark = readMark(folder);
  if (mark === 'foreign') throw new Refused(notADemo(folder));
  if (mark !== 'nothing') {
    if (isAlive(mark.process))
      throw new Refused(
        `a demo runs already: ${mark.url ?? `process ${mark.process.pid}`} (doorplate demo --remove)`,
      );
    await removeDataFolder(resolve(folder));
    say('The demo of an earlier start is removed, with its data.');
  }
  makeMarkedFolder(folder);
  say('Writing thirty days of a made-up customer …');

  const dataDir = realpathSync(folder);
  const [port, opsPort, sitePort] = [await freePort(), await freePort(), await freePort()];
  const site = `http://127.0.0.1:${sitePort}`;
  const directoryFile = join(dataDir, 'directory.jsonl');
  const env = {
    DATA_DIR: dataDir,
    PORT: String(port),
    OPS_PORT: String(opsPort),
    LOG_LEVEL: 'error',
    ENRICHMENT_DIRECTORY: directoryFile,
    WEBHOOK_ALLOW_NETWORKS: '127.0.0.1/32',
    WEBHOOK_ALLOW_HTTP: '1',
    WEBHOOK_ALLOW_PORTS: String(sitePort),
  };
  const log = createLogger({ level: 'error', destination: 'stderr' });
  const places = { env, directoryFile, pageOrigin: site, receiver: site };
  const { user, password, trackers, visitors } = await writeHistory(places, log);
  const url = `http://127.0.0.1:${port}`;
  await startSite({ port: sitePort, service: url, trackers, visitors });
  await serve('all', env);
  writeMark(folder, url);
  say(`
The demo is ready after ${Math.round((performance.now() - begun) / 1_000)} s:

  dashboard   ${url}/dashboard
  login       ${user}
  password    ${password}
  a website   ${site}   (each visit of it appears in the dashboard)

Companies, ISPs, visitors and their addresses are made up: the addresses are real ones of their countries, and belong to others.
Nothing leaves this machine. The data is in ${folder}; other commands take it by DATA_DIR=${folder}.
Ctrl-C stops the demo; "doorplate demo --remove" also removes its folder.
`);
}

/** Says which settings of the environment do not count here, and hides them also from libraries that read it. */
function ignoreSettings(say: (line: string) => void): void {
  const names = settingsIn(process.env);
  for (const name of names) delete process.env[name];
  if (names.length > 0)
    say(`Ignored, because the demo takes no setting from the environment: ${names.join(', ')}`);
}

async function removeDemo(folder: string): Promise<void> {
  const mark = readMark(folder);
  if (mark === 'nothing') throw new Refused(`there is no demo here (${folder})`);
  if (mark === 'foreign') throw new Refused(notADemo(folder));
  const { process: demo } = mark;
  if (isAlive(demo)) {
    process.kill(demo.pid, 'SIGTERM');
    if (!(await until(() => !isAlive(demo), STOP_MS))) process.kill(demo.pid, 'SIGKILL');
  }
  await removeDataFolder(realpathSync(folder));
  process.stdout.write(`The demo is stopped, and ${folder} is removed.\n`);
}

const notADemo = (folder: string): string =>
  `${folder} has no mark of a demo (${DEMO_MARK}), so it is neither used nor removed`;
