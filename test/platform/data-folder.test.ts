import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDataFolder, refuseOtherWriters } from '../../platform/config/data-folder.ts';
import { ensureKeyFile } from '../../platform/crypto/master-key.ts';

const isRoot = process.getuid?.() === 0;

let parent: string;
let folder: string;
let umask: number;
beforeEach(() => {
  umask = process.umask(0);
  parent = mkdtempSync(join(tmpdir(), 'doorplate-folder-'));
  folder = join(parent, 'above', 'data');
});
afterEach(() => {
  process.umask(umask);
  rmSync(parent, { recursive: true });
});

const modeOf = (path: string) => statSync(path).mode & 0o777;

describe('the data folder', () => {
  it('is created writable only by its owner, and its key readable only by its owner, under umask 000', () => {
    expect(openDataFolder(folder)).toBe(folder);
    ensureKeyFile(folder);
    expect(modeOf(folder)).toBe(isRoot ? 0o755 : 0o700);
    expect(modeOf(join(parent, 'above')) & 0o022).toBe(0);
    expect(modeOf(join(folder, 'master.key'))).toBe(0o600);
    expect(openDataFolder(folder)).toBe(folder);
  });

  it.each([0o777, 0o775, 0o757])('is refused by name when its mode is %o', (mode) => {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, mode);
    expect(() => openDataFolder(folder)).toThrow(
      `others than its owner may write it: ${folder} (mode ${mode.toString(8)}). ` +
        `Check what it holds, then: chmod go-w ${folder}`,
    );
  });

  it.each(['master.key', 'demo.env'])('is refused when others may read its %s, which is named', (name) => {
    openDataFolder(folder);
    const file = join(folder, name);
    writeFileSync(file, '', { mode: 0o640 });
    expect(() => openDataFolder(folder)).toThrow(
      `others than its owner may read or write this secret: ${file}`,
    );
    chmodSync(file, 0o600);
    expect(openDataFolder(folder)).toBe(folder);
  });

  it('is refused when others may write the file that says where PostgreSQL keeps its data', () => {
    openDataFolder(folder);
    const file = join(folder, 'postgres.location');
    writeFileSync(file, '', { mode: 0o664 });
    expect(() => openDataFolder(folder)).toThrow(`others than its owner may write it: ${file}`);
  });

  it.skipIf(!isRoot)('is refused when a file in it belongs to another user (needs root)', () => {
    openDataFolder(folder);
    const file = join(folder, 'master.key');
    writeFileSync(file, '', { mode: 0o600 });
    chownSync(file, 65_534, 65_534);
    expect(() => openDataFolder(folder)).toThrow(`${file} belongs to user 65534, who can change it`);
    expect(() => refuseOtherWriters(folder, { plain: ['master.key'], owner: 65_534 })).not.toThrow();
    chownSync(folder, 65_534, 65_534);
    expect(openDataFolder(folder)).toBe(folder);
  });
});
