/**
 * Runs the embedded PostgreSQL in a separate process that stands for the server: prints `{"url", "pid"}` or
 * `{"error"}` as one line, and stops when its standard input ends. Arguments: the data folder, the mode, the folder
 * used when PostgreSQL's user cannot reach the first.
 */
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';

const [dataDir = '', mode, sharedDir = ''] = process.argv.slice(2);
const quiet = { info: () => {}, warn: () => {}, error: () => {} };
const print = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

try {
  const postgres = await startEmbeddedPostgres({
    dataDir,
    mode: mode === 'join' ? 'join' : 'own',
    durable: false,
    sharedDir,
    log: quiet,
  });
  print({ url: postgres.url, pid: postgres.pid });
  process.stdin.resume();
  process.stdin.once('end', () => void postgres.stop().then(() => process.exit(0)));
} catch (error) {
  print({ error: error instanceof Error ? error.message : String(error) });
  process.exit(1);
}
