import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { DumpError, dumpTo, loadFrom } from '../../platform/postgres/dump.ts';
import { emptyDatabase, testDatabase } from '../support/database.ts';

it('refuses a dump whose manifest names other tables, because names become SQL', async () => {
  const [source, target] = [await testDatabase(), await emptyDatabase()];
  const folder = mkdtempSync(join(tmpdir(), 'doorplate-dump-'));
  onTestFinished(async () => {
    rmSync(folder, { recursive: true });
    await source.drop();
    await target.drop();
  });
  const { migrations } = await dumpTo(source.url, folder);
  const injected = 'eventlog.event; commit; create table public.injected (); commit; begin; --';
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify({ migrations, rows: { [injected]: 0 } }));

  const refused = await loadFrom(target.url, folder).catch((error: unknown) => error);
  const client = new pg.Client({ connectionString: target.url });
  await client.connect();
  const { rows } = await client.query(`select to_regclass('public.injected') as injected`);
  await client.end();
  expect(rows).toEqual([{ injected: null }]);
  expect(refused).toBeInstanceOf(DumpError);
});
