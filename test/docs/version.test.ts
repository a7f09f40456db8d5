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
  [
    "the image's label",
    /^LABEL (?:.*\\\n)* *org\.opencontainers\.image\.version="(.+?)"/m.exec(read('Dockerfile'))?.[1],
  ],
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

it('the image is labelled with the description and the licence of package.json', () => {
  const { description, license } = JSON.parse(read('package.json'));
  const labels = read('Dockerfile');
  expect(labels).toContain(`org.opencontainers.image.description="${description}"`);
  expect(labels).toContain(`org.opencontainers.image.licenses="${license}"`);
});
