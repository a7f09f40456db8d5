import { execFile, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { deliveryErrorSchema } from '../../domain/webhooks/events.ts';
import { systemClock } from '../../platform/clock/clock.ts';
import { createSender, signatureHeaders } from '../../processors/webhooks/delivery/sender.ts';
import { reapProcess } from '../support/reaped.ts';

const docs = (name: string) => fileURLToPath(new URL(`../../docs/${name}`, import.meta.url));
const page = await readFile(docs('webhooks.md'), 'utf8');
const block = (language: string): string =>
  new RegExp(`\`\`\`${language}\\n(.*?)\\n\`\`\``, 's').exec(page)?.[1] ?? '';
const python = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0;

const now = systemClock.now();
const secret = randomBytes(32);
const previous = randomBytes(32);
const WHSEC = `whsec_${secret.toString('base64')}`;
const ID = 'evt_test_0198c0de-0000-7000-8000-000000000001';
const bodyOf = (id: string) =>
  Buffer.from(JSON.stringify({ id, type: 'webhook.test', data: { message: 'é' } }));
const BODY = bodyOf(ID);
const headersOf = (secrets = [secret], at = now, body = BODY) => signatureHeaders(secrets, ID, at, body);
const without = (name: string) => {
  const { [name]: _, ...rest } = headersOf();
  return rest;
};
const doubled = (name: string) => ({
  ...headersOf(),
  [name]: [1, 2].map(() => headersOf()[name]).join(', '),
});

type Case = readonly [
  what: string,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  genuine: boolean,
];
const CASES: readonly Case[] = [
  ['one signature', headersOf(), BODY, true],
  ['two signatures, the secret the newer one', headersOf([secret, previous]), BODY, true],
  ['two signatures, the secret the older one', headersOf([previous, secret]), BODY, true],
  ['a timestamp of four minutes ago', headersOf([secret], now - 240_000), BODY, true],
  ['another secret', headersOf([previous]), BODY, false],
  ['another body', headersOf(), Buffer.concat([BODY, Buffer.from(' ')]), false],
  ['a timestamp of six minutes ago', headersOf([secret], now - 360_000), BODY, false],
  ['a timestamp in six minutes', headersOf([secret], now + 360_000), BODY, false],
  ['another timestamp than was signed', { ...headersOf(), 'webhook-timestamp': '1773491400' }, BODY, false],
  ['another id than the event', headersOf([secret], now, bodyOf('evt_test_2')), bodyOf('evt_test_2'), false],
  ['no id', without('webhook-id'), BODY, false],
  ['no timestamp', without('webhook-timestamp'), BODY, false],
  ['no signature', without('webhook-signature'), BODY, false],
  ['two ids', doubled('webhook-id'), BODY, false],
  ['two timestamps', doubled('webhook-timestamp'), BODY, false],
  ['two headers of signatures', doubled('webhook-signature'), BODY, false],
  ['a signature cut short', { ...headersOf(), 'webhook-signature': 'v1,AAAA' }, BODY, false],
];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'doorplate-docs-'));
  await writeFile(join(folder, 'verify.ts'), block('ts'));
  await writeFile(join(folder, 'verify.py'), block('python'));
});
afterAll(() => rm(folder, { recursive: true }));

describe('the verification example of docs/webhooks.md', () => {
  test.each(CASES)('verifies in TypeScript: %s', async (_, headers, body, genuine) => {
    const { verify } = await import(pathToFileURL(join(folder, 'verify.ts')).href);
    expect(verify(WHSEC, headers, body)).toEqual(genuine ? JSON.parse(body.toString()) : null);
  });

  it.skipIf(!python)('verifies the same in Python', async () => {
    const script = `
import base64, json, sys
from verify import verify
print(json.dumps([verify("${WHSEC}", h, base64.b64decode(b)) for h, b in json.loads(sys.argv[1])]))`;
    const cases = JSON.stringify(CASES.map(([, headers, body]) => [headers, body.toString('base64')]));
    const { stdout } = await promisify(execFile)('python3', ['-c', script, cases], { cwd: folder });
    expect(JSON.parse(stdout)).toEqual(
      CASES.map(([, , body, genuine]) => (genuine ? JSON.parse(body.toString()) : null)),
    );
  });
});

const php = spawnSync('php', ['--version']).status === 0;

it.skipIf(!php)('verifies the same in PHP', async () => {
  await writeFile(join(folder, 'verify.php'), `<?php\n${block('php')}`);
  const script = `require 'verify.php'; $found = array_map(
    fn ($case) => verify('${WHSEC}', (array) $case[0], base64_decode($case[1])), json_decode($argv[1]));
    echo json_encode($found);`;
  const cases = JSON.stringify(CASES.map(([, headers, body]) => [headers, body.toString('base64')]));
  const { stdout } = await promisify(execFile)('php', ['-r', script, '--', cases], { cwd: folder });
  expect(JSON.parse(stdout)).toEqual(
    CASES.map(([, , body, genuine]) => (genuine ? JSON.parse(body.toString()) : null)),
  );
});

describe('docs/webhooks.md', () => {
  it.each([
    ['ts', 'typescript'],
    ['python', 'python'],
    ['go', 'go'],
    ['php', 'php'],
  ])('has the snippet in %s that the page of an endpoint shows', async (language, name) => {
    const snippet = new URL(`../../web/dashboard/snippets/${name}.txt`, import.meta.url);
    expect(`${block(language)}\n`).toBe(await readFile(snippet, 'utf8'));
  });

  it('lists every delivery error', () => {
    const table = page.slice(page.indexOf('| `error` |'));
    for (const error of deliveryErrorSchema.options) expect(table).toContain(`\`${error}\``);
  });
});

describe('docs/examples/webhook-receiver.mjs', () => {
  it('does not start without a secret, which would accept every signature', () => {
    const env = { PATH: process.env.PATH, PORT: '0' };
    const { status, stderr } = spawnSync(process.execPath, [docs('examples/webhook-receiver.mjs')], {
      env,
      timeout: 10_000,
      encoding: 'utf8',
    });
    expect(status).toBe(1);
    expect(stderr).toContain('WEBHOOK_SECRET');
  });

  it('accepts genuine requests, recognizes repeats, and refuses the rest', async () => {
    const child = spawn(process.execPath, [docs('examples/webhook-receiver.mjs')], {
      env: { PATH: process.env.PATH, WEBHOOK_SECRET: WHSEC, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    if (child.pid !== undefined) reapProcess(child.pid);
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const line = async (): Promise<string> => (await lines.next()).value ?? 'it has ended';
    const port = Number(/:(\d+)$/.exec(await line())?.[1]);
    const policy = { allowHttp: true, allowPorts: [port], allowNetworks: ['127.0.0.0/8'], ownOrigins: [] };
    const sender = createSender({
      policy,
      clock: systemClock,
      extraCa: null,
      resolver: new Resolver(),
      isOwnDomain: async () => false,
    });
    const send = (headers: Readonly<Record<string, string>>, body: Buffer) =>
      sender.send({ url: `http://localhost:${port}/hooks`, headers, body, partner_id: 'a partner' });
    try {
      for (const word of ['new', 'again']) {
        expect(await send(headersOf(), BODY)).toEqual({
          http_status: 204,
          error: null,
          retry_after_ms: null,
        });
        expect(await line()).toBe(`${word} webhook.test ${ID} {"message":"é"}`);
      }
      for (const [, headers, body, genuine] of CASES) {
        expect((await send(headers, body)).http_status).toBe(genuine ? 204 : 400);
        expect(await line()).toMatch(genuine ? /^again / : /^refused: /);
      }
      const half = connect(port, 'localhost').resume();
      half.end('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf');
      await once(half, 'close');
      expect((await send(headersOf(), Buffer.alloc(1_048_577))).http_status).toBe(413);
    } finally {
      await sender.close();
      child.kill();
      await once(child, 'close');
    }
  });
});
