import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { billingStream } from '../../domain/billing/events.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { doorplateHere, type Environment, MASTER_KEY } from '../support/doorplate.ts';
import { complete, completedReveal } from '../support/reveals.ts';
import { makeTestFolder } from '../support/temporary-folder.ts';
import { verify } from '../support/verifier.ts';

let database: TestDatabase;
let folder: string;
let env: Environment;
let partner: string;
beforeAll(async () => {
  database = await testDatabase();
  folder = makeTestFolder();
  env = { DATABASE_URL: database.url, DATA_DIR: folder, MASTER_KEY };
  partner = JSON.parse((await doorplateHere(['partner', 'create', 'acme', '--json'], env)).stdout).partner_id;
  const store = createPostgresEventStore({ url: database.url, now: Date.now });
  for (const hasData of [true, false, true]) {
    const completed_at = '2026-03-01T12:00:00.000Z';
    const expires_at = '2100-01-01T00:00:00.000Z';
    await complete(store, completedReveal({ partner_id: partner, completed_at, expires_at }, hasData));
  }
  await store.close();
});
afterAll(async () => {
  await removeDataFolder(folder);
  await database.drop();
});

const audit = (...args: string[]) => doorplateHere(['audit', 'billing', ...args], env);

describe('doorplate audit billing', () => {
  it('bills completed reveals without a running server and finds no difference', async () => {
    const { code, stdout, stderr } = await audit('--partner', 'acme', '--json');
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      partner_id: partner,
      months: [
        { month: '2026-03', entries: 3, units: 2, head_digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
      ],
      units: 2,
      differences: [],
    });
    expect(stderr).toContain(
      '3 entries: 3 held against their receipts, 0 of receipts that are known to have expired, 0 too old',
    );
  });

  it('prints a table or CSV, for the given month', async () => {
    const table = await audit('--partner', partner);
    expect(table.stdout).toMatch(/^month +entries +units +head_digest\n2026-03 +3 +2 +[0-9a-f]{64}\n/);
    expect(table.stdout).toMatch(/^differences +0$/m);
    const csv = await audit('--partner', partner, '--csv', '--month', '2026-02');
    expect(csv.stdout).toBe('month,entries,units,head_digest\n2026-02,0,0,\n');
  });

  it('prints entries that the independent verifier confirms', async () => {
    const { code, stdout } = await audit('--partner', 'acme', '--entries');
    expect(code).toBe(0);
    const entries = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(entries.map(({ number, units }) => [number, units])).toEqual([
      [0, 1],
      [1, 0],
      [2, 1],
    ]);
    const anchor = entries[0].digest;
    expect(await verify(partner, entries, anchor)).toEqual({ code: 0, stdout: '2026-03 2\nOK\n' });
  });

  it('refuses a changed anchor by its signature, as the independent verifier does', async () => {
    const [line = ''] = (await doorplateHere(['audit', 'anchor', '--partner', 'acme'], env)).stdout.split(
      '\n',
    );
    const changed = join(folder, 'changed.jsonl');
    await writeFile(changed, `${JSON.stringify({ ...JSON.parse(line), entries: 2 })}\n`);
    const { code, stdout } = await audit('--partner', 'acme', '--json', '--anchor', changed);
    const { differences } = JSON.parse(stdout);
    expect([code, differences.map(({ kind }: { kind: string }) => kind)]).toEqual([1, ['anchor_signature']]);
    expect((await verify(partner, [], changed)).stdout).toMatch(/^anchor_signature: /);
  });

  it('exits with 1 and names the differences', async () => {
    const anchor = 'f'.repeat(64);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query(
      `update eventlog.event set data = (data::jsonb || '{"units": 1}')::json where stream = $1 and revision = 1`,
      [billingStream(partner)],
    );
    await client.end();
    const { code, stdout, stderr } = await audit('--partner', 'acme', '--json', '--anchor', anchor);
    expect(code).toBe(1);
    expect(stderr).toContain('doorplate: 6 differences found\n');
    const { differences } = JSON.parse(stdout);
    expect(differences.map(({ kind }: { kind: string }) => kind)).toEqual([
      'digest_mismatch',
      'unit_mismatch',
      'read_model_mismatch',
      'usage_mismatch',
      'usage_mismatch',
      'anchor_missing',
    ]);
    expect(Object.keys(differences[0])).toEqual(['kind', 'stream', 'revision', 'reveal_id', 'detail']);
  });

  it('refuses a file without an anchor of the partner, and one with other content', async () => {
    const file = join(folder, 'anchors.jsonl');
    await writeFile(file, '\n');
    const empty = await audit('--partner', 'acme', '--anchor', file);
    expect(empty.code).toBe(1);
    expect(empty.stderr).toContain('doorplate: anchor_not_found: ');
    await writeFile(file, '\n{"entries": 3}\n');
    const other = await audit('--partner', 'acme', '--anchor', file);
    expect(other.code).toBe(2);
    expect(other.stderr).toContain('line 2 of the file is not an anchor');
  });

  it.each([
    ['without a partner', []],
    ['with entries and a month', ['--partner', 'acme', '--entries', '--month', '2026-03']],
  ])('exits with 2 %s', async (_how, args) => {
    const { code, stdout, stderr } = await audit(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).not.toBe('');
  });
});
