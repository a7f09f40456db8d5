import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHANGES } from '../../cli/analytics/changes.ts';
import { exportChanges } from '../../cli/analytics/export-changes.ts';
import { exportView } from '../../cli/analytics/export-view.ts';
import { allProjections } from '../../projections/all.ts';
import { makeExamples } from '../support/examples.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

interface DuckDb {
  readonly DuckDBInstance: {
    create(): Promise<{ connect(): Promise<DuckConnection> }>;
  };
}
interface DuckConnection {
  runAndReadAll(sql: string): Promise<{ getRowObjectsJson(): Record<string, unknown>[] }>;
  closeSync(): void;
}

/** 70 MB, which no other test needs: `npm install --no-save @duckdb/node-api` runs this file. */
const PACKAGE = '@duckdb/node-api';
const duckDb: DuckDb | null = await import(PACKAGE).catch(() => null);

describe.skipIf(duckDb === null)(`DuckDB, where ${PACKAGE} is installed`, () => {
  let stack: TestStack;
  let folder: string;
  let duck: DuckConnection;
  const rows = async (sql: string) => (await duck.runAndReadAll(sql)).getRowObjectsJson();
  const inDatabase = async (view: string) =>
    (await stack.rows(`select count(*)::int as n from analytics.${view}`))[0]?.n;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'doorplate-duckdb-'));
    stack = await startTestStack();
    await makeExamples(stack.store);
    const projecting = stack.project(allProjections);
    await stack.caughtUp(allProjections);
    await projecting.stop();
    duck = await (await (duckDb as DuckDb).DuckDBInstance.create()).connect();
  });
  afterAll(async () => {
    duck.closeSync();
    await stack.close();
    rmSync(folder, { recursive: true });
  });

  it('reads a view as a file', async () => {
    const out = join(folder, 'units.parquet');
    await exportView({ url: stack.url, view: 'units', format: 'parquet', out });
    const found = await rows(
      `select units, completed_at = timestamptz '2026-02-27 10:00:00+00' as first from '${out}' order by completed_at`,
    );
    expect(found).toHaveLength(5);
    expect(found[0]).toEqual({ units: 1, first: true });
  });

  it('reads the loads of every view at once, and the newest row of each id, as docs/analytics.md shows', async () => {
    for (const [view, { id }] of Object.entries(CHANGES)) {
      const { position } = await exportChanges({ url: stack.url, view, since: 0n, out: folder });
      if (view === 'sessions') {
        await stack.pool.query(
          `with gone as (delete from read.session where visitor_country = 'US' returning *)
           insert into read.expired_session select session_id, partner_id, expires_at, '2026-03-31', $1::bigint + 1 from gone`,
          [position],
        );
        await stack.pool.query('update read.projection set position = $1::bigint + 1', [position]);
        await exportChanges({ url: stack.url, view, since: BigInt(position), out: folder });
      }
      const expected = await inDatabase(view);
      if (expected === 0) continue;
      const [found] = await rows(
        `select count(*)::int as n, count(day)::int as days from (
           select * from read_parquet('${folder}/${view}/since=*/day=*/*.parquet', hive_partitioning = true)
           qualify row_number() over (partition by ${id.join(', ')} order by changed_position desc) = 1)
         where not deleted`,
      );
      expect(found, view).toEqual({ n: expected, days: expected });
    }
  });
});
