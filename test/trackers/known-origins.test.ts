import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPool } from '../../platform/postgres/pool.ts';
import { createTrackerDirectory } from '../../queries/trackers/directory.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { planOf, rowsRead } from '../support/rows-read.ts';

const LABELS = Array(90).fill('a').join('.');

describe.each([100, 5_000])('beside %i trackers', (count) => {
  let database: TestDatabase;
  let pool: pg.Pool;
  beforeAll(async () => {
    database = await testDatabase();
    pool = openPool(database.url, { warn: () => undefined }, { max: 2 });
    await pool.query(
      `insert into read.tracker (tracker_id, partner_id, name, origins, created_at)
     select gen_random_uuid(), gen_random_uuid(), 'a site',
            array['https://www.site' || nth || '.example', 'https://*.shop' || nth || '.example'], now()
     from generate_series(1, $1) nth`,
      [count],
    );
    await pool.query('analyze read.tracker');
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  const observed = () => {
    const asked: { text: string; values: unknown[] }[] = [];
    const query = (statement: { text: string; values: unknown[] }) => {
      asked.push(statement);
      return pool.query(statement);
    };
    const directory = createTrackerDirectory({
      pool: { query } as unknown as pg.Pool,
      caughtUp: async () => true,
    });
    return { asked, directory };
  };

  it.each([
    ['https://www.stranger.example', false],
    [`https://${LABELS}.stranger.example`, false],
    ['https://www.site7.example', true],
    [`https://${LABELS}.shop7.example`, true],
  ])('the origin %s of a preflight is looked up without reading the others', async (origin, known) => {
    const { asked, directory } = observed();
    expect(await directory.anyAllows(origin)).toBe(known);
    const [{ text, values } = { text: '', values: [] }] = asked;
    expect(rowsRead(await planOf(pool, text, values), 'tracker')).toBeLessThanOrEqual(5);
  });

  it('takes one connection for any number of origins at once', async () => {
    const { asked, directory } = observed();
    const sites = Array.from({ length: 40 }, (_, nth) => nth + 81);
    const known = await Promise.all(
      sites.map((nth) => directory.anyAllows(`https://www.site${nth}.example`)),
    );
    expect(known).toEqual(sites.map((nth) => nth <= count));
    expect(asked).toHaveLength(1);
  });
});
