import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createClient } from '../../../clients/typescript/src/index.ts';
import { proxyFor } from '../../../clients/typescript/src/proxy.ts';

interface Case {
  readonly env: Readonly<Record<string, string>>;
  readonly url: string;
  readonly proxy: string | null;
}

/** The Python client's tests read them too. */
const cases: readonly Case[] = JSON.parse(
  readFileSync(new URL('../proxies/cases.json', import.meta.url), 'utf8'),
);

it.each(cases)('finds the proxy of $url in $env', ({ env, url, proxy }) => {
  expect(proxyFor(new URL(url), env)).toBe(proxy);
});

describe('a client behind a proxy', () => {
  afterEach(() => vi.unstubAllEnvs());

  it('sends its calls through the proxy, and ends one that is not answered in time', async () => {
    const seen: IncomingMessage[] = [];
    const proxy = createServer((request, response) => {
      seen.push(request);
      if (seen.length === 1)
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok"}');
    });
    await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening));
    try {
      vi.stubEnv('HTTP_PROXY', `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
      vi.stubEnv('NO_PROXY', '');
      const client = createClient({
        baseUrl: 'http://doorplate.example',
        apiKey: 'dp_x',
        retries: 0,
        timeoutMs: 300,
      });
      expect(await client.health()).toEqual({ status: 'ok' });
      expect(seen[0]?.url).toBe('http://doorplate.example/healthz');
      await expect(client.health()).rejects.toMatchObject({ kind: 'timeout', outcome: 'unknown' });
    } finally {
      proxy.closeAllConnections();
      proxy.close();
    }
  });
});
