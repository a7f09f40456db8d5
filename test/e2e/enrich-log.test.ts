/** `doorplate-client enrich` against the started product: a log, stopped once and resumed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import type { Service } from '../support/service.ts';
import { startServiceOnDatabase } from '../support/service-on-database.ts';

const PROGRAM = fileURLToPath(new URL('../../clients/typescript/src/cli.ts', import.meta.url));
const ADDRESSES = 150;
const SAVED = 75;

let service: Service;
let key: string;
const folder = mkdtempSync(join(tmpdir(), 'doorplate-enrich-'));
const [log, out] = [join(folder, 'access.log'), join(folder, 'companies.csv')];

const address = (n: number): string => `9.20.${n >> 8}.${n & 255}`;

const start = (...more: string[]): { child: ChildProcess; said: () => string } => {
  const env = { PATH: process.env.PATH, DOORPLATE_URL: service.url, DOORPLATE_API_KEY: key };
  const args = [PROGRAM, 'enrich', log, '--out', out, ...more];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  return { child, said: () => said };
};

const linesOf = (path: string): string[] => readFileSync(path, 'utf8').split('\n').slice(1, -1);
const exitOf = async (child: ChildProcess): Promise<unknown> => (await once(child, 'close'))[0];

beforeAll(async () => {
  service = await startServiceOnDatabase({ env: { ENRICHMENT_INTAKE_PER_MINUTE: '100000' } });
  key = (await service.newKey({ requests_per_second: 1_000 })).api_key;
  for (let n = 0; n < SAVED; n += 1)
    await service.call('POST', '/v1/lookup', { key, body: { ip: address(n) } });
  const lines = Array.from({ length: ADDRESSES * 5 }, (_, n) => {
    const ip = n % 49 === 48 ? '10.0.0.7' : address(n % ADDRESSES);
    return `${ip} - - [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 12 "-" "x"`;
  });
  writeFileSync(log, `${lines.join('\n')}\n8.8.8.8 - - "GET /"\nnot a line of a log\n`);
}, 90_000);
afterAll(async () => {
  await service?.remove();
  rmSync(folder, { recursive: true, force: true });
});

it('looks up each address of a log once, also when it is stopped and resumed', async () => {
  const first = start('--concurrency', '2');
  await eventually(
    'some are finished',
    () => /** the header at first */ readSafely(),
    (rows) => rows > 20,
  );
  first.child.kill('SIGINT');
  expect(await exitOf(first.child)).toBe(130);
  const before = linesOf(`${out}.part`).length;
  expect(before).toBeLessThan(ADDRESSES);
  expect(first.said()).toContain('the same command goes on from here');

  const second = start();
  expect(await exitOf(second.child)).toBe(0);
  const rows = linesOf(out).map((row) => row.split(','));
  const wanted = new Set([...Array.from({ length: ADDRESSES }, (_, n) => address(n)), '8.8.8.8']);
  expect(new Set(rows.map(([ip]) => ip))).toEqual(wanted);
  expect(rows).toHaveLength(wanted.size);
  expect(rows.find(([ip]) => ip === '8.8.8.8')?.slice(1, 4)).toEqual(['1', 'company', 'true']);
  expect(second.said()).toMatch(
    new RegExp(`${ADDRESSES * 5 + 2} lines, ${wanted.size} addresses, ${before} finished before`),
  );
  expect(second.said()).toContain('15 with addresses that are not public, 1 without one');

  const usage = await service.call('GET', '/v1/usage', { key });
  // One submission an address, those before the run included: nothing was submitted twice.
  expect(usage.body.outcomes.enqueued).toBe(wanted.size);
}, 90_000);

const readSafely = (): number => {
  try {
    return linesOf(`${out}.part`).length;
  } catch {
    return 0;
  }
};
