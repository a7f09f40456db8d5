import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { CLIENT_PACKAGE_PATH, clientPackageRoute } from '../../http/docs/client-package.ts';
import { aServer } from './shell.ts';

const run = promisify(execFile);
const app = aServer({ routes: [clientPackageRoute()] });

it('serves the client as a package that npm runs without a registry', async () => {
  const served = await app.inject(CLIENT_PACKAGE_PATH);
  expect([served.statusCode, served.headers['content-type']]).toEqual([200, 'application/gzip']);
  const folder = mkdtempSync(join(tmpdir(), 'doorplate-test-package-'));
  try {
    const file = join(folder, 'client.tgz');
    writeFileSync(file, served.rawPayload);
    const empty = join(folder, 'empty');
    mkdirSync(empty);
    const url = `${await app.listen({ host: '127.0.0.1', port: 0 })}${CLIENT_PACKAGE_PATH}`;
    const npx = (...args: string[]) =>
      run('npx', ['--yes', '--cache', join(folder, 'cache'), url, ...args], {
        cwd: empty,
        env: {
          ...process.env,
          npm_config_registry: 'http://127.0.0.1:9/',
          npm_config_fetch_retries: '0',
          DOORPLATE_URL: url,
          DOORPLATE_API_KEY: 'dp_x',
        },
      });
    expect((await npx('--help')).stdout).toContain('doorplate-client verify [options]');
    await expect(npx('mcp')).rejects.toThrow(/npm install @modelcontextprotocol\/server@[\d.]+ zod@/);
    await run('tar', ['-xzf', file, '-C', folder]);
    const { version, exports } = JSON.parse(readFileSync(join(folder, 'package/package.json'), 'utf8'));
    expect(CLIENT_PACKAGE_PATH).toContain(version);
    const { createClient } = await import(join(folder, 'package', exports['.']));
    expect(createClient).toBeTypeOf('function');
  } finally {
    await app.close();
    rmSync(folder, { recursive: true, force: true });
  }
}, 60_000);
