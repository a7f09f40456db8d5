import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../../cli/installation/free-port.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { reapProcess } from '../support/reaped.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { CADDY, describeWithProxies } from './edge.ts';

const SHIPPED = new URL('../../deploy/cluster/Caddyfile', import.meta.url);
const ADDRESSES = ['127.0.0.1', '127.0.0.2'];
const REQUESTS = 40;

describeWithProxies('the front door of the cluster, with Caddy before two processes', () => {
  const folder = makeTemporaryFolder('doorplate-front-door-');
  const answered = new Map<string, number>();
  let processes: Server[];
  let dns: DnsServer;
  let caddy: ChildProcess;
  let front: string;

  beforeAll(async () => {
    const [port, frontPort] = [await freePort(), await freePort()];
    dns = await startDnsServer((type) => (type === 'A' ? ADDRESSES : []));
    processes = ADDRESSES.map((address) =>
      createServer((_request, response) => {
        answered.set(address, (answered.get(address) ?? 0) + 1);
        response.end(address);
      }).listen(port, address),
    );
    await Promise.all(processes.map((one) => once(one, 'listening')));
    // As shipped, but for the ports, and for the name server that a container network has.
    const file = join(folder, 'Caddyfile');
    const shipped = readFileSync(SHIPPED, 'utf8');
    const adapted = shipped
      .replace(':3100 {', `:${frontPort} {\n\tbind 127.0.0.1`)
      .replace('port 3000', `port ${port}\n\t\t\tresolvers ${dns.resolver.getServers()[0]}`);
    expect(adapted).toContain(`port ${port}`);
    writeFileSync(file, adapted);
    const env = { XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
    caddy = spawn(CADDY, ['run', '--adapter', 'caddyfile', '--config', file], { env, stdio: 'ignore' });
    if (caddy.pid !== undefined) reapProcess(caddy.pid);
    front = `http://127.0.0.1:${frontPort}/`;
    await eventually(
      'Caddy answers',
      () => fetch(front).catch(() => null),
      (answer) => answer?.status === 200,
    );
  }, 30_000);
  afterAll(async () => {
    if (caddy?.exitCode === null && caddy.kill('SIGTERM')) await once(caddy, 'close');
    for (const one of processes ?? []) one.close();
    dns?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const ask = async (): Promise<number[]> => {
    const statuses: number[] = [];
    while (statuses.length < REQUESTS) statuses.push((await fetch(front)).status);
    return statuses;
  };

  it('sends each request to the next process, so that both answer half of them', async () => {
    answered.clear();
    expect(new Set(await ask())).toEqual(new Set([200]));
    expect([...answered.values()]).toEqual([REQUESTS / 2, REQUESTS / 2]);
  });

  it('loses no request when a process stops whose name is still there', async () => {
    const [stopped] = processes;
    stopped?.close();
    stopped?.closeAllConnections();
    answered.clear();
    expect(new Set(await ask())).toEqual(new Set([200]));
    expect([...answered]).toEqual([[ADDRESSES[1], REQUESTS]]);
  });
});
