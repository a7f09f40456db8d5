import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

const newest = /^## (\d+\.\d+\.\d+) /m.exec(read('CHANGELOG.md'))?.[1];

it.each([
  ['package.json', JSON.parse(read('package.json')).version],
  ['package-lock.json', JSON.parse(read('package-lock.json')).version],
  ['the TypeScript client', JSON.parse(read('clients/typescript/package.json')).version],
  ['the Python client', /^version = "(.+)"$/m.exec(read('clients/python/pyproject.toml'))?.[1]],
  [
    'doorplate --version',
    execFileSync(
      process.execPath,
      [fileURLToPath(new URL('../../bin/doorplate.js', import.meta.url)), '--version'],
      {
        encoding: 'utf8',
      },
    ).trim(),
  ],
])('%s has the version of the newest section of CHANGELOG.md', (_, version) => {
  expect(version).toBe(newest);
});
