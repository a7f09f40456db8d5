/** Partners' programs against a ledger in the event store: `doorplate-client verify`, and both clients. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { verify } from '../../clients/typescript/src/cli/verify.ts';
import { createClient, type LedgerAnchor } from '../../clients/typescript/src/index.ts';
import { billingStream } from '../../domain/billing/events.ts';
import { DAY } from '../../domain/kernel/time.ts';
import { revealEnvelope } from '../../domain/webhooks/envelope.ts';
import { createDailyAnchors } from '../../processors/billing/daily-anchors.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { type Manipulation, manipulations } from '../support/manipulations.ts';
import { type Completed, complete, completedReveal } from '../support/reveals.ts';

const clock = manualClock();
const folder = mkdtempSync(join(tmpdir(), 'doorplate-verify-'));
const [receiptsFile, anchorsFile] = [join(folder, 'receipts.jsonl'), join(folder, 'anchors.jsonl')];
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const hasPython =
  spawnSync('python3', ['-c', 'import cryptography, sys; sys.exit(sys.version_info < (3, 10))']).status === 0;

let api: TestApi;
let url: string;
let key: Key;
let completed: Completed[];

beforeAll(async () => {
  api = await startApi({ clock });
  url = await api.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await api.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A partner with six reveals, their webhooks as its server has kept them, and an anchor that it holds. */
beforeEach(async () => {
  key = await api.key();
  const days = ['2026-02-10', '2026-02-20', '2026-03-01', '2026-03-02', '2026-03-03', '2026-03-04'];
  completed = days.map((day, nth) =>
    completedReveal({ partner_id: key.partner_id, completed_at: `${day}T10:00:00.000Z` }, nth !== 1),
  );
  for (const one of completed) await complete(api.runtime.store, one);
  writeFileSync(
    receiptsFile,
    completed.map((one) => `${JSON.stringify(revealEnvelope(one, {}))}\n`).join(''),
  );
  rmSync(anchorsFile, { force: true });
  // Waits for the entries.
  await api.inject(key, { method: 'GET', url: '/v1/ledger' });
  await createDailyAnchors(api.runtime)();
});

const run = promisify(execFile);
const environment = () => ({ PATH: process.env.PATH, DOORPLATE_URL: url, DOORPLATE_API_KEY: key.api_key });

/** The command, in a process of its own. */
const command = async (...args: string[]): Promise<{ code: number; said: string }> => {
  const program = join(ROOT, 'clients/typescript/src/cli.ts');
  return run(process.execPath, [program, 'verify', ...args], { env: environment() }).then(
    ({ stdout }) => ({ code: 0, said: stdout }),
    ({ code, stdout, stderr }) => ({ code, said: `${stdout}${stderr}` }),
  );
};

const verifyAll = async (): Promise<{ isSound: boolean; said: string }> => {
  let said = '';
  const isSound = await verify({
    client: createClient({ baseUrl: url, apiKey: key.api_key }),
    month: '2026-03',
    receipts: receiptsFile,
    anchors: anchorsFile,
    signal: new AbortController().signal,
    output: { write: (text) => (said += text) },
  });
  return { isSound, said };
};

const PYTHON = `
import json, os, sys
from doorplate_client import Client
proof = Client(os.environ["DOORPLATE_URL"], os.environ["DOORPLATE_API_KEY"]).verify_ledger(anchors=json.loads(sys.argv[1]))
print(proof.difference and proof.difference.kind)
`;

/** The kind of difference that each client names. */
const foundBy = async (anchors: readonly LedgerAnchor[]): Promise<(string | null)[]> => {
  const { difference } = await createClient({ baseUrl: url, apiKey: key.api_key }).verifyLedger({ anchors });
  const found: (string | null)[] = [difference?.kind ?? null];
  if (hasPython) {
    const env = { ...environment(), PYTHONPATH: join(ROOT, 'clients/python/src') };
    const { stdout } = await run('python3', ['-B', '-c', PYTHON, JSON.stringify(anchors)], { env });
    found.push(stdout.trim() === 'None' ? null : stdout.trim());
  }
  return found;
};

const anchors = (): LedgerAnchor[] =>
  readFileSync(anchorsFile, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

const tamper = async (manipulate: Manipulation): Promise<void> => {
  const client = await api.sql.connect();
  await manipulate(client, key.partner_id);
  client.release();
};

describe('doorplate-client verify', () => {
  it('says what a month comes to, and keeps the newest anchor once', async () => {
    const first = await command('--month', '2026-03', '--receipts', receiptsFile, '--anchors', anchorsFile);
    expect(first).toEqual({ code: 0, said: expect.stringMatching(/^2026-03: 4 entries, 4 units\n/) });
    const again = await verifyAll();
    expect(again.isSound).toBe(true);
    expect(again.said).toMatch(
      /kept and fitting: 1, signed with \S+\nreceipts found for all entries: 4\nOK: 6 entries and 5 units/,
    );
    expect(anchors()).toHaveLength(1);
  });

  it('names every entry and receipt that have not each other', async () => {
    const [, , missing] = completed as [Completed, Completed, Completed];
    const stranger = completedReveal({
      partner_id: key.partner_id,
      completed_at: '2026-03-05T00:00:00.000Z',
    });
    const kept = [...completed.filter((one) => one !== missing), stranger];
    writeFileSync(receiptsFile, JSON.stringify(kept.map((one) => revealEnvelope(one, {}).data)));
    const { isSound, said } = await verifyAll();
    expect(isSound).toBe(false);
    expect(said).toContain(`missing_entry: reveal ${stranger.reveal_id}`);
    expect(said).toContain(`unknown_reveal at entry 2: 1 units for reveal ${missing.reveal_id}`);
    expect(said.trimEnd().split('\n')).toHaveLength(2);
    expect(anchors()).toHaveLength(1);
  });

  it('adds an anchor to a file without a last newline, and refuses one that is no file of lines', async () => {
    await verifyAll();
    const [kept] = anchors();
    const earlier = JSON.stringify({ ...kept, signature: 'other', entries: 0 });
    writeFileSync(anchorsFile, earlier);
    expect((await verifyAll()).said).toContain('anchor_signature');
    writeFileSync(anchorsFile, JSON.stringify(kept));
    clock.advance(DAY);
    await createDailyAnchors(api.runtime)();
    expect((await verifyAll()).isSound).toBe(true);
    expect(anchors()).toHaveLength(2);
    expect((await verifyAll()).isSound).toBe(true);
    writeFileSync(anchorsFile, JSON.stringify([kept]));
    await expect(verifyAll()).rejects.toThrow(/line 1 is not an anchor$/);
    writeFileSync(receiptsFile, 'null\n');
    await expect(verifyAll()).rejects.toThrow(/line 1 is neither/);
  });

  it('ends with one line for a file that is none, and with its help for no month', async () => {
    writeFileSync(receiptsFile, '{"reveal_id"\n');
    await expect(verifyAll()).rejects.toThrow(/line 1 is not JSON$/);
    expect(await command('--receipts', join(folder, 'none'))).toEqual({
      code: 1,
      said: expect.stringMatching(/^doorplate-client: .*none cannot be read: ENOENT\n$/),
    });
    expect((await command('--month', '2026-13')).code).toBe(2);
  });
});

describe('a ledger that was tampered with in the event store', () => {
  const raw =
    (statement: string): Manipulation =>
    async (client, partnerId) =>
      void (await client.query(statement, [billingStream(partnerId)]));

  it.each<[string, Manipulation, string | null]>([
    [
      'an entry was changed',
      raw(
        `update eventlog.event set data = jsonb_set(data::jsonb, '{units}', '0')::json where stream = $1 and revision = 2`,
      ),
      'digest_mismatch',
    ],
    [
      'an entry was removed',
      raw('delete from eventlog.event where stream = $1 and revision = 2'),
      'number_gap',
    ],
    ['an entry was changed and all digests made again', manipulations.changeUnits, 'anchor_missing'],
    ['the end was cut off', manipulations.cutTheEnd, 'anchor_missing'],
    ['an entry was invented and chained', manipulations.inventEntry, null],
  ])('shows in both clients: %s', async (_what, manipulate, kind) => {
    expect((await verifyAll()).isSound).toBe(true);
    await tamper(manipulate);
    expect(new Set(await foundBy(anchors()))).toEqual(new Set([kind]));
    const { isSound, said } = await verifyAll();
    expect([isSound, said]).toEqual([false, expect.stringContaining(kind ?? 'unknown_reveal at entry 6')]);
  });
});
