import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lockTarget, TargetBusy } from '../../cli/analytics/export-lock.ts';
import { type ExportOptions, exportView } from '../../cli/analytics/export-view.ts';
import { UnknownView } from '../../cli/analytics/views.ts';
import { allProjections } from '../../projections/all.ts';
import { makeExamples } from '../support/examples.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { until } from '../support/until.ts';

let stack: TestStack;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'doorplate-export-'));
  stack = await startTestStack();
  await makeExamples(stack.store);
  const projecting = stack.project(allProjections);
  await stack.caughtUp(allProjections);
  await projecting.stop();
});
afterAll(async () => {
  await stack.close();
  rmSync(folder, { recursive: true });
});

const export_ = (view: string, over: Partial<ExportOptions> = {}) => {
  const out = join(folder, `${view}.${over.format ?? 'csv'}`);
  return exportView({ url: stack.url, view, format: 'csv', out, ...over }).then((done) => ({ ...done, out }));
};
const readBack = async (path: string) => {
  const file = await asyncBufferFromFile(path);
  return { metadata: await parquetMetadataAsync(file), rows: await parquetReadObjects({ file }) };
};
/** From the database, with the views' own comments and types. */
const inDatabase = (view: string) => stack.rows(`select * from analytics.${view}`);

const sorted = (rows: readonly object[]): string[] => rows.map((row) => JSON.stringify(row, plain)).sort();
const plain = (_name: string, value: unknown): unknown =>
  typeof value === 'bigint' ? value.toString() : value;

describe('an export to Parquet', () => {
  it('contains the rows of every view', async () => {
    const views = await stack.rows(
      `select viewname as name from pg_views where schemaname = 'analytics' order by 1`,
    );
    for (const { name } of views) {
      const view = String(name);
      const { rows, out, bytes } = await export_(view, { format: 'parquet' });
      const found = await readBack(out);
      const expected = (await inDatabase(view)).map((row) =>
        'day' in row ? { ...row, day: new Date(`${(row.day as Date).toDateString()} UTC`) } : row,
      );
      expect(sorted(found.rows), view).toEqual(sorted(expected));
      expect(rows, view).toBe(expected.length);
      expect(bytes, view).toBe(statSync(out).size);
    }
  });

  it('has the types of the columns', async () => {
    const { out } = await export_('units', { format: 'parquet' });
    const { metadata, rows } = await readBack(out);
    const types = parquetSchema(metadata).children.map(({ element: { name, type, converted_type } }) => [
      name,
      type,
      converted_type,
    ]);
    expect(types).toEqual([
      ['reveal_id', 'BYTE_ARRAY', 'UTF8'],
      ['partner_id', 'BYTE_ARRAY', 'UTF8'],
      ['tracker_id', 'BYTE_ARRAY', 'UTF8'],
      ['key_id', 'BYTE_ARRAY', 'UTF8'],
      ['asked_by', 'BYTE_ARRAY', 'UTF8'],
      ['completed_at', 'INT64', 'TIMESTAMP_MILLIS'],
      ['month', 'BYTE_ARRAY', 'UTF8'],
      ['units', 'INT32', undefined],
      ['ledger_number', 'INT32', undefined],
    ]);
    const instant = parquetSchema(metadata).children[5]?.element.logical_type;
    expect(instant).toEqual({ type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' });
    expect(rows[0]).toMatchObject({
      completed_at: new Date('2026-02-27T10:00:00.000Z'),
      units: 1,
      ledger_number: null,
    });
    const hours = await readBack((await export_('usage_hours', { format: 'parquet' })).out);
    expect(hours.rows[0]).toMatchObject({ requests: 100n, key_id: 'key_b' });
    const reveals = await readBack((await export_('reveals', { format: 'parquet' })).out);
    expect(new Set(reveals.rows.map(({ billable }) => billable))).toEqual(new Set([true, false]));
    const totals = await readBack((await export_('delivery_totals', { format: 'parquet' })).out);
    expect(totals.rows[0]).toMatchObject({ day: new Date('2026-03-01') });
  });

  it('is a valid file when there are no rows', async () => {
    const { out } = await export_('sessions', { format: 'parquet', to: '2020-01-01T00:00:00Z' });
    expect((await readBack(out)).rows).toEqual([]);
  });
});

describe('an export to CSV', () => {
  it('distinguishes null from the empty text, quotes, and writes times and booleans in plain form', async () => {
    await stack.pool.query(
      `insert into read.tracker (tracker_id, partner_id, name, origins, created_at, disabled_at)
       values ('cccccccc-0000-4000-8000-000000000001', 'cccccccc-0000-4000-8000-000000000002',
               E'a "b", c\\nd', '{}', '2020-01-01T00:00:00.250Z', null)`,
    );
    const { out } = await export_('trackers', { to: '2021-01-01T00:00:00Z' });
    expect(readFileSync(out, 'utf8')).toBe(
      'tracker_id,partner_id,name,origins,created_at,disabled_at,deleted_at\n' +
        'cccccccc-0000-4000-8000-000000000001,cccccccc-0000-4000-8000-000000000002,"a ""b"", c\nd","",' +
        '2020-01-01T00:00:00.250Z,,\n',
    );
    await stack.pool.query(
      `delete from read.tracker where partner_id = 'cccccccc-0000-4000-8000-000000000002'`,
    );
    const reveals = readFileSync((await export_('reveals')).out, 'utf8');
    expect(reveals).toMatch(/,true,company,true,false,Acme,/);
    expect(readFileSync((await export_('delivery_totals')).out, 'utf8')).toMatch(/\n2026-03-01,/);
  });

  it('is ordered by its first time column, bounded by it, and limited', async () => {
    const lines = async (over: Partial<ExportOptions>) =>
      readFileSync((await export_('usage_hours', over)).out, 'utf8')
        .trim()
        .split('\n')
        .slice(1)
        .map((line) => line.slice(0, 13));
    const day = ['2026-03-01T10', '2026-03-01T10', '2026-03-01T11'];
    expect(await lines({})).toEqual(['2026-02-28T10', ...day]);
    expect(await lines({ from: '2026-03-01T00:00:00Z' })).toEqual(day);
    expect(await lines({ from: '2026-03-01T10:00:00Z', to: '2026-03-01T11:00:00Z' })).toEqual(
      day.slice(0, 2),
    );
    expect(await lines({ limit: 1 })).toEqual(['2026-02-28T10']);
  });
});

describe('a failing export', () => {
  const files = () => readdirSync(folder).filter((name) => name.includes('broken'));

  it('leaves no file, and the previous file unchanged', async () => {
    const out = join(folder, 'broken.csv');
    const stopped = AbortSignal.abort(new Error('stopped'));
    await expect(export_('units', { out, signal: stopped })).rejects.toThrow('stopped');
    expect(files()).toEqual([]);
    writeFileSync(out, 'from before');
    await expect(export_('nothing', { out })).rejects.toThrow(UnknownView);
    await expect(export_('units"; drop', { out })).rejects.toThrow(/view_not_found.*there are .*sessions/);
    await stack.pool.query(
      `create view analytics.breaking as
         select now() as at, 1 / (7000 - n) as n from generate_series(1, 9000) n where analytics.time_is_limited()`,
    );
    for (const format of ['csv', 'parquet'] as const) {
      await expect(export_('breaking', { out, format })).rejects.toThrow('division by zero');
    }
    await stack.pool.query('drop view analytics.breaking');
    expect(files()).toEqual(['broken.csv']);
    expect(readFileSync(out, 'utf8')).toBe('from before');
    await expect(export_('units', { out: join(folder, 'no-folder', 'x.csv') })).rejects.toThrow('ENOENT');
  });
});

describe('an export to a file that another one writes', () => {
  it('is refused, and the next one removes what a killed one left of that file alone', async () => {
    const out = join(folder, 'busy.csv');
    const left = [
      `busy.csv.${randomUUID()}.partial`,
      `busy.csv.gz.${randomUUID()}.partial`,
      'busy.csv.mine.partial',
    ];
    for (const name of left) writeFileSync(join(folder, name), '');
    const other = new pg.Client({ connectionString: stack.url });
    await other.connect();
    await lockTarget(other, folder, 'busy.csv');
    await expect(export_('units', { out })).rejects.toThrow(TargetBusy);
    await export_('units', { out: join(folder, 'idle.csv') });
    await other.end();
    await until('the lock is free', () =>
      export_('units', { out }).then(
        () => true,
        () => false,
      ),
    );
    expect(
      readdirSync(folder)
        .filter((name) => name.startsWith('busy'))
        .sort(),
    ).toEqual(['busy.csv', ...left.slice(1)].sort());
  });
});

describe('a large export', () => {
  it('is complete although rows are added meanwhile', async () => {
    await stack.pool.query(
      `insert into read.usage_hour
       select 'key_' || n % 1000, timestamptz '2025-01-01Z' + n / 1000 * interval '1 hour', 'company', 's', n, 1, n * 1000
       from generate_series(0, 119999) n`,
    );
    const stop = new AbortController();
    const writing = (async () => {
      for (let n = 0; !stop.signal.aborted; n += 1) {
        await stack.pool.query(
          `insert into read.usage_hour values ('late', timestamptz '2025-06-01Z' + $1 * interval '1 hour', 'company', 's', 1, 1, 1)`,
          [n],
        );
      }
    })();
    await until(
      'others write',
      async () => (await stack.rows(`select from read.usage_hour where key_id = 'late'`)).length > 0,
    );
    const whole = await export_('usage_hours', { format: 'parquet' });
    stop.abort();
    await writing;
    const { metadata, rows } = await readBack(whole.out);
    expect(metadata.row_groups.length).toBeGreaterThan(2);
    const late = rows.filter(({ key_id }) => key_id === 'late').length;
    expect(rows.length - late).toBe(120_004);
    const sum = rows.reduce(
      (all, { requests, key_id }) => all + (key_id === 'late' ? 0n : (requests as bigint)),
      0n,
    );
    expect(sum).toBe((119_999n * 120_000n) / 2n + 128n);
  });
});

it('has every hour where the role writes dates in the German style', async () => {
  const german = await startTestStack();
  await german.rows(`do $$ begin
    execute format('alter role %I in database %I set datestyle = ''German''', current_user, current_database());
  end $$`);
  await makeExamples(german.store);
  const projecting = german.project(allProjections);
  await german.caughtUp(allProjections);
  await projecting.stop();
  const out = join(folder, 'german.csv');
  await exportView({ url: german.url, view: 'usage_hours', format: 'csv', out });
  await german.close();
  const [, ...rows] = readFileSync(out, 'utf8').trimEnd().split('\n');
  const hours = rows.map((row) => row.split(',')[0]);
  expect(hours).toContain('2026-03-01T11:00:00.000Z');
  expect(hours.filter((hour) => !/^2026-\d\d-\d\dT\d\d:00:00\.000Z$/.test(hour ?? ''))).toEqual([]);
});
