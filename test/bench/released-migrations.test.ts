import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, it, onTestFinished } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../../bench/checks/released-migrations.ts', import.meta.url));

let folder: string;

const run = (...options: string[]) => {
  const { status, stderr } = spawnSync(process.execPath, [PROGRAM, ...options, folder], { encoding: 'utf8' });
  return { status, problems: stderr.replaceAll(`${folder}/`, '').trim().split('\n') };
};
const write = (name: string, sql: string): void => writeFileSync(join(folder, name), sql);

const PASSED = { status: 0, problems: [''] };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'doorplate-migrations-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  write('0001_first.sql', 'select 1;\n');
  write('0002_second.sql', 'select 2;\n');
  write('0004_fourth.sql', 'select 4;\n');
  expect(run('--write')).toEqual(PASSED);
});

it('names a released migration that has changed, is missing or has another name, each in one line', () => {
  expect(run()).toEqual(PASSED);
  write('0001_first.sql', 'select 1; \n');
  rmSync(join(folder, '0002_second.sql'));
  renameSync(join(folder, '0004_fourth.sql'), join(folder, '0004_last.sql'));
  expect(run()).toEqual({
    status: 1,
    problems: [
      '0001_first.sql was released and has changed: put it back, and write a new migration instead',
      '0004_fourth.sql was released and is named 0004_last.sql now: give it its name back',
      '0002_second.sql was released and is missing: put it back',
    ],
  });
});

it('accepts a new migration only with a number above that of every released one', () => {
  write('0005_fifth.sql', 'select 5;\n');
  expect(run()).toEqual(PASSED);
  write('0003_third.sql', 'select 3;\n');
  write('0004_other.sql', 'select 4.1;\n');
  expect(run()).toEqual({
    status: 1,
    problems: ['0003_third.sql', '0004_other.sql'].map(
      (name) => `${name} is new, and its number is not above that of 0004_fourth.sql, the last released one`,
    ),
  });
});

it('writes new migrations into the list, and refuses to replace the digest of a released one', () => {
  write('0005_fifth.sql', 'select 5;\n');
  expect(run('--write')).toEqual(PASSED);
  const list = readFileSync(join(folder, 'released.json'), 'utf8');
  expect(Object.keys(JSON.parse(list))).toContain('0005_fifth.sql');
  write('0005_fifth.sql', 'select 6;\n');
  expect(run('--write').status).toBe(1);
  expect(readFileSync(join(folder, 'released.json'), 'utf8')).toBe(list);
});

it('fails when the list itself is missing', () => {
  rmSync(join(folder, 'released.json'));
  expect(run()).toEqual({ status: 1, problems: ['released.json is missing: put it back'] });
});
