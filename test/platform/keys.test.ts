import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keyedDigest, resealKeys, serviceKey } from '../../platform/crypto/keyring.ts';
import {
  beginKeyChange,
  endKeyChange,
  keyFileIn,
  loadMasterKey,
  masterKeyFrom,
} from '../../platform/crypto/master-key.ts';
import { type TestDatabase, testDatabase, testPool } from '../support/database.ts';

let database: TestDatabase;
let pool: pg.Pool;
let folder: string;
beforeAll(async () => {
  database = await testDatabase();
  pool = testPool(database);
  folder = await mkdtemp(join(tmpdir(), 'doorplate-keys-'));
});
afterAll(async () => {
  await pool.end();
  await database.drop();
  await rm(folder, { recursive: true });
});

const newKey = () => randomBytes(32);
const base64 = (key: Buffer) => key.toString('base64');

describe('the master key', () => {
  it('opens what it sealed, and nothing that was changed, has another purpose or is under another key', () => {
    const key = masterKeyFrom(newKey());
    const sealed = key.seal(Buffer.from('secret'), 'mine');
    expect(key.open(sealed, 'mine').toString()).toBe('secret');
    expect(sealed.sealed.includes('secret')).toBe(false);
    const changed = Buffer.from(sealed.sealed);
    changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
    expect(() => key.open({ ...sealed, sealed: changed }, 'mine')).toThrow();
    expect(() => key.open(sealed, 'yours')).toThrow();
    expect(() => masterKeyFrom(newKey()).open(sealed, 'mine')).toThrow(/^MASTER_KEY is not/);
  });

  it('is created once, for its owner alone, and found again', async () => {
    const made = [loadMasterKey({}, folder), loadMasterKey({}, folder)].map((key) => key.currentId());
    expect(made[0]).toBe(made[1]);
    expect((await stat(keyFileIn(folder))).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(['master.key']);
    expect(loadMasterKey({ MASTER_KEY: base64(newKey()) }, folder).currentId()).not.toBe(made[0]);
  });

  it('changes in the data folder while processes use it, and they open earlier values until the end', async () => {
    const user = loadMasterKey({}, folder);
    const [before, id] = [user.seal(Buffer.from('secret')), user.currentId()];
    beginKeyChange(keyFileIn(folder));
    const other = loadMasterKey({}, folder);
    expect(user.seal(Buffer.from('x')).master_key_id).toBe(other.currentId());
    expect(other.currentId()).not.toBe(id);
    expect(other.open(before).toString()).toBe('secret');
    // Started again, it continues with the same keys.
    beginKeyChange(keyFileIn(folder));
    expect(loadMasterKey({}, folder).currentId()).toBe(other.currentId());
    endKeyChange(keyFileIn(folder));
    endKeyChange(keyFileIn(folder));
    expect(loadMasterKey({}, folder).currentId()).toBe(other.currentId());
    expect(() => loadMasterKey({}, folder).open(before)).toThrow(/^MASTER_KEY is not/);
    expect((await stat(keyFileIn(folder))).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(['master.key']);
  });

  it('is refused from a file with other content', async () => {
    const other = await mkdtemp(join(tmpdir(), 'doorplate-keys-'));
    for (const text of ['', 'c2hvcnQ=\n', `${base64(newKey())}\nnonsense\n`]) {
      await writeFile(keyFileIn(other), text);
      expect(() => loadMasterKey({}, other)).toThrow('does not hold keys');
    }
    await rm(other, { recursive: true });
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

  it('cannot be opened with another master key', async () => {
    await serviceKey(pool, masterKeyFrom(randomBytes(32)), 'two');
    await expect(serviceKey(pool, masterKeyFrom(randomBytes(32)), 'two')).rejects.toThrow(
      /^MASTER_KEY is not/,
    );
  });

  it('is resealed once under the current master key, and stays the same', async () => {
    const [old, current] = [newKey(), newKey()];
    const keys = ['three', 'four'];
    await pool.query('delete from work.keyring');
    const before = await Promise.all(keys.map((name) => serviceKey(pool, masterKeyFrom(old), name)));
    const both = masterKeyFrom(current, old);
    await serviceKey(pool, both, 'five');
    expect(await resealKeys(pool, both)).toBe(2);
    expect(await resealKeys(pool, both)).toBe(0);
    const after = await Promise.all(keys.map((name) => serviceKey(pool, masterKeyFrom(current), name)));
    expect(after).toEqual(before);
    await expect(resealKeys(pool, masterKeyFrom(newKey()))).rejects.toThrow(/^MASTER_KEY is not/);
  });

  it('does not open in the row of another key', async () => {
    const master = masterKeyFrom(newKey());
    await pool.query('delete from work.keyring');
    await serviceKey(pool, master, 'six');
    await serviceKey(pool, master, 'seven');
    await pool.query(
      `update work.keyring set sealed = (select sealed from work.keyring where name = 'six') where name = 'seven'`,
    );
    await expect(serviceKey(pool, master, 'seven')).rejects.toThrow(
      'the key seven of work.keyring does not open',
    );
    await expect(resealKeys(pool, master)).rejects.toThrow();
  });
});
