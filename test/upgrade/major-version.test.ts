import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { manualClock, startApi } from '../support/api.ts';
import { KEPT } from '../support/backup.ts';
import { emptyDatabase } from '../support/database.ts';
import { doorplateHere, MASTER_KEY } from '../support/doorplate.ts';
import { answersOf, type Surroundings, settled, startSurroundings } from '../support/everything.ts';
import { makeTestFolder } from '../support/temporary-folder.ts';
import { comparable, RECORDED_AT, readDumpAnswers, writeRecordedDump } from './recorded.ts';

const quiet = { info: () => {}, warn: () => {}, error: () => {} };

let around: Surroundings;
let recorded: ReturnType<typeof readDumpAnswers>;
let dataDir: string;
let dump: string;

const versionAt = async (url: string) => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query('show server_version_num');
  await client.end();
  return Math.floor(rows[0].server_version_num / 10_000);
};

/** Makes a data folder whose cluster says that it is PostgreSQL 17's. */
const startUnder17 = async (): Promise<void> => {
  const postgres = await startEmbeddedPostgres({ dataDir, log: quiet, durable: false });
  await postgres.stop();
  writeFileSync(join(dataDir, 'postgres', 'cluster', 'PG_VERSION'), '17\n');
};

beforeAll(async () => {
  around = await startSurroundings();
  recorded = readDumpAnswers('postgresql-17', around);
  dataDir = makeTestFolder();
  dump = join(dataDir, 'dump');
  await startUnder17();
  writeRecordedDump('postgresql-17', dump, around);
}, 60_000);
afterAll(async () => {
  await around?.close();
  await removeDataFolder(dataDir);
});

/** Tables that the release that made the dump did not have. */
const SINCE_THE_DUMP = ['work.provider_day', 'work.recovery_code', 'work.second_factor', 'work.user_profile'];

describe('the embedded PostgreSQL after a major version', () => {
  it('refuses the data folder of 17 and names the steps', async () => {
    const { code, stderr } = await doorplateHere(['store', 'load', dump], { DATA_DIR: dataDir });
    expect(code).toBe(1);
    expect(stderr).toContain("PostgreSQL 17's and this is 18: see docs/backup-and-upgrade.md, Upgrading");
  });

  it('gives the same answers from a dump made under 17', { timeout: 60_000 }, async () => {
    renameSync(join(dataDir, 'postgres'), join(dataDir, 'postgres-17'));
    const { code, stdout, stderr } = await doorplateHere(['store', 'load', dump, '--json'], {
      DATA_DIR: dataDir,
    });
    expect(code, stderr).toBe(0);
    expect(Object.keys(JSON.parse(stdout)).toSorted()).toEqual(
      KEPT.filter((table) => !SINCE_THE_DUMP.includes(table)).toSorted(),
    );
    const postgres = await startEmbeddedPostgres({ dataDir, log: quiet, durable: false });
    expect(await versionAt(postgres.url)).toBe(18);
    const database = { url: postgres.url, drop: async () => {} };
    const clock = manualClock(RECORDED_AT);
    const api = await startApi({ clock, providers: [around.provider], env: around.env, database });
    await settled(api);
    expect(comparable(await answersOf(api, recorded.used))).toMatchObject(comparable(recorded.answers));
    await api.close();
    await postgres.stop();
  });
});

describe('doorplate store load', () => {
  const load = (url: string, folder = dump) =>
    doorplateHere(['store', 'load', folder], { DATABASE_URL: url });

  it('refuses a database that holds events', async () => {
    const used = await emptyDatabase();
    const first = await load(used.url);
    expect(first.code, first.stderr).toBe(0);
    const { code, stderr } = await load(used.url);
    expect([code, stderr]).toEqual([1, expect.stringContaining('holds events already')]);
    await used.drop();
  });

  it('refuses an incomplete dump', async () => {
    const database = await emptyDatabase();
    const { code, stderr } = await load(database.url, dataDir);
    expect([code, stderr]).toEqual([1, expect.stringContaining('has no manifest.json')]);
    await database.drop();
  });

  it('refuses a dump with the tables of a later version', async () => {
    const database = await emptyDatabase();
    const later = join(dataDir, 'later');
    mkdirSync(later);
    const manifest = { migrations: ['9999_later'], rows: {} };
    writeFileSync(join(later, 'manifest.json'), JSON.stringify(manifest));
    const { code, stderr } = await load(database.url, later);
    expect([code, stderr]).toEqual([1, expect.stringContaining('a later version made the tables')]);
    await database.drop();
  });
});

describe('doorplate store dump', () => {
  it('refuses a folder that exists', async () => {
    expect(existsSync(dump)).toBe(true);
    const { code, stderr } = await doorplateHere(['store', 'dump', dump], { DATA_DIR: dataDir, MASTER_KEY });
    expect([code, stderr]).toEqual([1, expect.stringContaining('cannot be made')]);
  });

  it('refuses a database without tables', async () => {
    const database = await emptyDatabase();
    const { code, stderr } = await doorplateHere(['store', 'dump', join(dataDir, 'none')], {
      DATABASE_URL: database.url,
    });
    expect([code, stderr]).toEqual([1, expect.stringContaining('has no tables')]);
    await database.drop();
  });
});
