import { chmodSync, chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cacheCompiledCode } from '../../platform/compile-cache.js';

describe('the folder of compiled code', () => {
  let root = '';
  let used: string[] = [];
  const enable = (folder: string): unknown => used.push(folder);

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'doorplate-'));
    used = [];
  });
  afterEach(() => rmSync(root, { recursive: true }));

  it('is made for its owner alone, whatever the umask', () => {
    const folder = join(root, 'cache', 'doorplate');
    const umask = process.umask(0);
    try {
      expect(cacheCompiledCode(folder, enable)).toBe(true);
    } finally {
      process.umask(umask);
    }
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(used).toEqual([folder]);
  });

  it.each([0o720, 0o702, 0o777])('is not used where others may write it: mode %o', (mode) => {
    chmodSync(root, mode);
    expect([cacheCompiledCode(root, enable), used]).toEqual([false, []]);
  });

  it.skipIf(process.getuid?.() !== 0)('is not used where it belongs to another user', () => {
    chownSync(root, 65_534, 65_534);
    expect([cacheCompiledCode(root, enable), used]).toEqual([false, []]);
  });

  it('is not used where it cannot be made', () => {
    const file = join(root, 'file');
    writeFileSync(file, '');
    expect([cacheCompiledCode(join(file, 'cache'), enable), used]).toEqual([false, []]);
  });
});
