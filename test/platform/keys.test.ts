import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keyedDigest, serviceKey } from '../../platform/keyring.ts';
import { loadMasterKey, masterKeyFrom } from '../../platform/master-key.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';

let database: TestDatabase;
let pool: pg.Pool;
let folder: string;
beforeAll(async () => {
  database = await testDatabase();
  pool = new pg.Pool({ connectionString: database.url });
  folder = await mkdtemp(join(tmpdir(), 'doorplate-keys-'));
});
afterAll(async () => {
  await pool.end();
  await database.drop();
  await rm(folder, { recursive: true });
});

describe('the master key', () => {
  it('opens what it sealed, and nothing that was changed or sealed under another', () => {
    const key = masterKeyFrom(randomBytes(32));
    const sealed = key.seal(Buffer.from('secret'));
    expect(key.open(sealed).toString()).toBe('secret');
    expect(sealed.includes('secret')).toBe(false);
    const changed = Buffer.from(sealed);
    changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
    expect(() => key.open(changed)).toThrow();
    expect(() => masterKeyFrom(randomBytes(32)).open(sealed)).toThrow();
  });

  it('is made once, for its owner alone, and found again', async () => {
    const both = await Promise.all([loadMasterKey(undefined, folder), loadMasterKey(undefined, folder)]);
    expect(both[0].id).toBe(both[1].id);
    expect((await stat(join(folder, 'master.key'))).mode & 0o777).toBe(0o600);
    const configured = await loadMasterKey(randomBytes(32).toString('base64'), folder);
    expect(configured.id).not.toBe(both[0].id);
  });
});

describe('a key of the service', () => {
  it('is the same in every process, and sealed at rest', async () => {
    const master = masterKeyFrom(randomBytes(32));
    const [here, there] = await Promise.all([
      serviceKey(pool, master, 'one'),
      serviceKey(pool, master, 'one'),
    ]);
    expect(here.equals(there)).toBe(true);
    const { rows } = await pool.query(`select sealed from work.keyring where name = 'one'`);
    expect(rows[0].sealed.includes(here)).toBe(false);
    expect(keyedDigest(here)('8.8.8.8')).toBe(keyedDigest(there)('8.8.8.8'));
    expect(keyedDigest(here)('8.8.8.8')).not.toBe(keyedDigest(here)('8.8.8.9'));
  });

  it('cannot be had with another master key', async () => {
    await serviceKey(pool, masterKeyFrom(randomBytes(32)), 'two');
    await expect(serviceKey(pool, masterKeyFrom(randomBytes(32)), 'two')).rejects.toThrow(
      /^MASTER_KEY is not/,
    );
  });
});
