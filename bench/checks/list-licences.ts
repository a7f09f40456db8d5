/**
 * Writes into NOTICE the packages that run with the product and their licences, from the lock file: `npm run generate:notice`. With
 * `--check` it writes nothing and fails when the list is out of date, or a package names no licence.
 */
import { readFileSync, writeFileSync } from 'node:fs';

const NOTICE = new URL('../../NOTICE', import.meta.url);
const LOCK = new URL('../../package-lock.json', import.meta.url);
const BEGIN =
  'Packages that are installed with the service, by licence (tools of development are left out):\n';

interface Entry {
  readonly version: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly link?: boolean;
}

const { packages } = JSON.parse(readFileSync(LOCK, 'utf8')) as { packages: Record<string, Entry> };
const FOLDER = 'node_modules/';
const installed = Object.entries(packages).filter(
  ([path, { dev, link }]) => path.includes(FOLDER) && !dev && !link,
);
const byLicence = Map.groupBy(installed, ([, { license }]) => license ?? '');
const nameless = byLicence.get('')?.map(([path]) => path) ?? [];
if (nameless.length > 0) {
  process.stderr.write(`NOTICE: the lock file has no licence of ${nameless.join(', ')}\n`);
  process.exit(1);
}
const lines = [...byLicence].toSorted().map(([licence, entries]) => {
  const names = entries.map(
    ([path, { version }]) => `${path.slice(path.lastIndexOf(FOLDER) + FOLDER.length)} ${version}`,
  );
  return `${licence}: ${[...new Set(names)].toSorted().join(', ')}\n`;
});
const before = readFileSync(NOTICE, 'utf8');
const own = before.split(BEGIN)[0] ?? '';
const made = `${own.trimEnd()}\n\n${BEGIN}\n${lines.join('\n')}`;
if (!process.argv.includes('--check')) writeFileSync(NOTICE, made);
else if (made !== before) {
  process.stderr.write('NOTICE: the packages have changed: npm run generate:notice\n');
  process.exitCode = 1;
}
