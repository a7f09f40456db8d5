import { chmodSync, lstatSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { doorplate } from '../support/doorplate.ts';
import { reap } from '../support/reaped.ts';
import { makeTestFolder } from '../support/temporary-folder.ts';

const parent = makeTestFolder();
const dataDir = join(parent, 'data');
reap({ folder: dataDir });
const umask = process.umask();
beforeAll(() => {
  process.umask(0);
});
afterAll(async () => {
  process.umask(umask);
  await removeDataFolder(dataDir);
  await removeDataFolder(parent);
});

const OTHERS_WRITE = 0o022;
const OTHERS = 0o077;
const listPartners = () => doorplate(['partner', 'list', '--json'], { DATA_DIR: dataDir });

const everythingIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));

it('the data folder is not writable for other users under umask 000, and no file in it readable, in the first and later starts', async () => {
  const made = await doorplate(['store', 'make-tables'], { DATA_DIR: dataDir });
  expect(made.code, made.stderr).toBe(0);
  for (const start of ['first', 'second']) {
    const { code, stderr } = await listPartners();
    expect(code, `${start} start: ${stderr}`).toBe(0);
    const paths = [dataDir, ...everythingIn(dataDir)];
    expect(paths.length).toBeGreaterThan(500);
    expect(paths.filter((path) => (lstatSync(path).mode & OTHERS_WRITE) !== 0)).toEqual([]);
    const files = paths.filter((path) => lstatSync(path).isFile());
    expect(files.filter((path) => (lstatSync(path).mode & OTHERS) !== 0)).toEqual([]);
  }
}, 60_000);

it.each(['.', 'master.key', 'postgres', 'postgres/password', 'postgres/in-use.json'])(
  'the service refuses to start when others may write %s, in one line that names it',
  async (name) => {
    const path = join(dataDir, name);
    const { mode } = statSync(path);
    chmodSync(path, mode | 0o002);
    const { code, stderr } = await listPartners();
    chmodSync(path, mode);
    expect(stderr).toContain(`: ${path} (mode `);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(code).toBe(1);
  },
);
