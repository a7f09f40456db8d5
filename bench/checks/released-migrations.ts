/**
 * Checks that released migrations stay as they were released, by their digests in `migrations/released.json`. Part of
 * `npm run check`. With `--write` (`npm run release:migrations`) it adds the files that are not listed yet, as the release commit does.
 * Usage: node bench/checks/released-migrations.ts [--write] [FOLDER]
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  options: { write: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const folder = positionals[0] ?? 'migrations';
const list = join(folder, 'released.json');

/** SHA-256 in hexadecimal of a file's bytes, by the file's name. */
type Digests = Readonly<Record<string, string>>;

const isFirst = !existsSync(list);
if (isFirst && !values.write) {
  process.stderr.write(`${list} is missing: put it back\n`);
  process.exit(1);
}
const released: Digests = isFirst ? {} : JSON.parse(readFileSync(list, 'utf8'));
const present: Digests = Object.fromEntries(
  readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
);
const last = Object.keys(released).sort().at(-1);
const missing = Object.keys(released).filter((name) => !(name in present));
const unlisted = Object.keys(present).filter((name) => !(name in released));
/** Released files under another name: the released name by the name of now. */
const renamed = new Map(
  unlisted.flatMap((name) => {
    const before = missing.find((other) => released[other] === present[name]);
    return before === undefined ? [] : [[name, before] as const];
  }),
);

const problems = [
  ...Object.keys(released)
    .filter((name) => name in present && present[name] !== released[name])
    .map((name) => `${name} was released and has changed: put it back, and write a new migration instead`),
  ...[...renamed].map(
    ([name, before]) => `${before} was released and is named ${name} now: give it its name back`,
  ),
  ...missing
    .filter((name) => ![...renamed.values()].includes(name))
    .map((name) => `${name} was released and is missing: put it back`),
  // A start refuses a number below one that has run.
  ...unlisted
    .filter((name) => !renamed.has(name) && last !== undefined && !(numberOf(name) > numberOf(last)))
    .map((name) => `${name} is new, and its number is not above that of ${last}, the last released one`),
];
for (const problem of problems) process.stderr.write(`${join(folder, problem)}\n`);
if (problems.length > 0) process.exit(1);
if (values.write) {
  writeFileSync(list, `${JSON.stringify(present, null, 2)}\n`);
  process.stdout.write(`${list}: ${unlisted.length} added, ${Object.keys(present).length} in all\n`);
} else {
  process.stdout.write(
    `${Object.keys(released).length} released migrations are unchanged, ${unlisted.length} are not released yet\n`,
  );
}

function numberOf(name: string): number {
  return Number(name.slice(0, 4));
}
