/** The edge as deploy/edge has it: Debian's HAProxy and Caddy, as separate processes before a service. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe } from 'vitest';
import { makeAuthority } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { reapProcess } from '../support/reaped.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const SHIPPED = fileURLToPath(new URL('../../deploy/edge/', import.meta.url));
const find = (...paths: (string | undefined)[]) =>
  paths.find((path) => path !== undefined && existsSync(path));

/** `HAPROXY` and `CADDY` may name other programs than Debian's. */
const haproxy = find(process.env.HAPROXY, '/usr/sbin/haproxy');
const caddy = find(process.env.CADDY, '/usr/bin/caddy');
/** A `describe` that skips its tests by name where HAProxy or Caddy is not installed. */
export const describeWithProxies = describe.skipIf(haproxy === undefined || caddy === undefined);

export interface Edge {
  readonly port: number;
  /** The authority of the service's own certificate, PEM. */
  readonly ca: string;
  stop(): Promise<void>;
}

export interface Behind {
  readonly port: string;
  readonly operationsPort: string;
  /** The service's own host name. */
  readonly name: string;
}

/** Starts HAProxy and Caddy with the shipped files on loopback ports. Call `stop` at the end. */
export const startEdge = async (service: Behind): Promise<Edge> => {
  const folder = makeTemporaryFolder('doorplate-edge-');
  const [https, http, fromCaddy, caddyPort, caddyHttp] = await Promise.all(
    Array.from({ length: 5 }, () => freePort()),
  );
  const authority = await makeAuthority();
  const { key, cert } = await authority.issue([service.name]);
  writeFileSync(join(folder, 'own.pem'), `${cert}\n${key}`);
  const env = {
    EDGE_HTTPS: `127.0.0.1:${https}`,
    EDGE_HTTP: `127.0.0.1:${http}`,
    EDGE_SOCKET: `doorplate-edge-${https}`,
    EDGE_NAME: service.name,
    EDGE_CERTIFICATES: join(folder, 'own.pem'),
    EDGE_LUA: join(SHIPPED, 'clients.lua'),
    EDGE_CADDY: `127.0.0.1:${caddyPort}`,
    EDGE_CADDY_HTTP: `127.0.0.1:${caddyHttp}`,
    EDGE_FROM_CADDY: `127.0.0.1:${fromCaddy}`,
    EDGE_PRODUCT: `127.0.0.1:${service.port}`,
    EDGE_CADDY_PORT: String(caddyPort),
    EDGE_CADDY_HTTP_PORT: String(caddyHttp),
    EDGE_OPERATIONS: `127.0.0.1:${service.operationsPort}`,
    EDGE_ISSUER: 'internal',
    XDG_DATA_HOME: folder,
    XDG_CONFIG_HOME: folder,
    HOME: folder,
  };
  const children: ChildProcess[] = [];
  let written = '';
  const run = (program: string, ...args: string[]): void => {
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    if (child.pid !== undefined) reapProcess(child.pid);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        written += text;
      });
    }
    children.push(child);
  };
  run(haproxy as string, '-db', '-f', join(SHIPPED, 'haproxy.cfg'));
  run(caddy as string, 'run', '--adapter', 'caddyfile', '--config', join(SHIPPED, 'Caddyfile'));
  const ports = [https, caddyPort];
  const listens = async (port: number | undefined): Promise<boolean> => {
    const socket = connect(port as number, '127.0.0.1');
    const opened = once(socket, 'connect').then(
      () => true,
      () => false,
    );
    return await opened.finally(() => socket.destroy());
  };
  const stop = async (): Promise<void> => {
    for (const child of children) {
      if (child.exitCode !== null) continue;
      child.kill('SIGTERM');
      await once(child, 'close');
    }
    rmSync(folder, { recursive: true, force: true });
  };
  await eventually('the proxies listen', async () =>
    (await Promise.all(ports.map(listens))).every(Boolean),
  ).catch(async (error: unknown) => {
    await stop();
    throw new Error(`${error}\n${written}`);
  });
  return { port: https as number, ca: authority.cert, stop };
};
