import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { copyDatabase, type TestDatabase, testDatabase } from '../support/database.ts';
import { doorplateHere, type Environment, MASTER_KEY } from '../support/doorplate.ts';
import { type Manipulation, manipulations } from '../support/manipulations.ts';
import { complete, completedReveal } from '../support/reveals.ts';
import { makeTestFolder } from '../support/temporary-folder.ts';
import { verify } from '../support/verifier.ts';

let original: TestDatabase;
let folder: string;
let partner: string;
let anchorFile: string;

const envOf = ({ url }: TestDatabase): Environment => ({ DATABASE_URL: url, DATA_DIR: folder, MASTER_KEY });

beforeAll(async () => {
  original = await testDatabase();
  folder = makeTestFolder();
  const env = envOf(original);
  partner = JSON.parse((await doorplateHere(['partner', 'create', 'acme', '--json'], env)).stdout).partner_id;
  const store = createPostgresEventStore({ url: original.url, now: Date.now });
  const completed_at = new Date(Date.now() - 3_600_000).toISOString();
  for (const hasData of [true, false, true, true, true, true]) {
    await complete(store, completedReveal({ partner_id: partner, completed_at }, hasData));
  }
  await store.close();
  const anchored = await doorplateHere(['audit', 'anchor'], env);
  expect(anchored.code, anchored.stderr).toBe(0);
  anchorFile = join(folder, 'anchors.jsonl');
  await writeFile(anchorFile, anchored.stdout);
});
afterAll(async () => {
  await removeDataFolder(folder);
  await original.drop();
});

/** The command's report on a manipulated copy of the database. */
const auditOf = async (manipulate: Manipulation | null, ...args: string[]) => {
  const copy = await copyDatabase(original.url);
  const client = new pg.Client({ connectionString: copy.url });
  await client.connect();
  await manipulate?.(client, partner);
  await client.end();
  const ended = await doorplateHere(
    ['audit', 'billing', '--partner', 'acme', '--json', ...args],
    envOf(copy),
  );
  await copy.drop();
  const { differences } = JSON.parse(ended.stdout) as { differences: { kind: string }[] };
  return { code: ended.code, kinds: new Set(differences.map(({ kind }) => kind)) };
};

describe('doorplate audit billing', () => {
  it.each([
    ['an entry was invented and chained', manipulations.inventEntry, ['missing_receipt']],
    [
      'a completion was removed with its entry and its row',
      manipulations.removeCompletion,
      ['missing_completion'],
    ],
    ['the units of an entry were changed, in its row too', manipulations.changeUnits, ['unit_mismatch']],
  ])(
    'detects without an anchor that %s and every digest was recomputed',
    async (_what, manipulate, kinds) => {
      const found = await auditOf(manipulate);
      expect(found).toEqual({ code: 1, kinds: new Set(kinds) });
    },
  );

  it('detects only by an anchor that the last entries were removed with every trace of their reveals', async () => {
    expect(await auditOf(manipulations.cutTheEnd)).toEqual({ code: 0, kinds: new Set() });
    const found = await auditOf(manipulations.cutTheEnd, '--anchor', anchorFile);
    expect(found).toEqual({ code: 1, kinds: new Set(['anchor_missing']) });
  });

  it('prints entries and anchors that the independent verifier confirms', async () => {
    const { stdout } = await doorplateHere(
      ['audit', 'billing', '--partner', 'acme', '--entries'],
      envOf(original),
    );
    const entries = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const good = await verify(partner, entries, anchorFile);
    expect(good.code).toBe(0);
    expect(good.stdout).toMatch(/^anchor of \S+ fits, signed with \S+\n\d{4}-\d\d 5\nOK\n$/);
    const cut = await verify(partner, entries.slice(0, 4), anchorFile);
    expect(cut).toEqual({ code: 1, stdout: expect.stringContaining('anchor_missing: entry 5 had ') });
  });

  it('refuses a changed anchor by its signature', async () => {
    const [line = ''] = (
      await doorplateHere(['audit', 'anchor', '--partner', 'acme'], envOf(original))
    ).stdout.split('\n');
    const changed = join(folder, 'changed.jsonl');
    await writeFile(changed, `${JSON.stringify({ ...JSON.parse(line), entries: 3 })}\n`);
    const found = await auditOf(null, '--anchor', changed);
    expect(found).toEqual({ code: 1, kinds: new Set(['anchor_signature']) });
    const { stdout } = await verify(partner, [], changed);
    expect(stdout).toMatch(/^anchor_signature: /);
  });
});
