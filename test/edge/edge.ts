/** The edge as deploy/edge has it: HAProxy and Caddy as separate processes before a service. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe } from 'vitest';
import { freePort } from '../../cli/installation/free-port.ts';
import { makeAuthority } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { reapProcess } from '../support/reaped.ts';
import type { Service } from '../support/service.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const SHIPPED = fileURLToPath(new URL('../../deploy/edge/', import.meta.url));
/** Debian's, or those that `HAPROXY` and `CADDY` name. */
const HAPROXY = process.env.HAPROXY ?? '/usr/sbin/haproxy';
export const CADDY = process.env.CADDY ?? '/usr/bin/caddy';

/** A `describe` that skips its tests by name where HAProxy or Caddy is not installed. */
export const describeWithProxies = describe.skipIf(!existsSync(HAPROXY) || !existsSync(CADDY));

export type Edge = Awaited<ReturnType<typeof startEdge>>;

/**
 * Starts both proxies with the shipped files on loopback ports. `name`: the service's own host. Call `stop` at the end.
 * @returns the port, and the authority of the own name's certificate as PEM
 */
export const startEdge = async (service: Service, name: string) => {
  const folder = makeTemporaryFolder('doorplate-edge-');
  const ports = await Promise.all(Array.from({ length: 5 }, freePort));
  const [https, http, fromCaddy, caddyHttps, caddyHttp] = ports;
  const authority = await makeAuthority();
  const { key, cert } = await authority.issue([name]);
  writeFileSync(join(folder, 'own.pem'), `${cert}\n${key}`);
  const { uid, username } = userInfo();
  const env = {
    EDGE_HTTPS: `127.0.0.1:${https}`,
    EDGE_HTTP: `127.0.0.1:${http}`,
    EDGE_SOCKET: `doorplate-edge-${https}`,
    EDGE_NAME: name,
    EDGE_CERTIFICATES: join(folder, 'own.pem'),
    EDGE_LUA: join(SHIPPED, 'clients.lua'),
    EDGE_CADDY: `127.0.0.1:${caddyHttps}`,
    EDGE_CADDY_HTTP: `127.0.0.1:${caddyHttp}`,
    EDGE_FROM_CADDY: `127.0.0.1:${fromCaddy}`,
    EDGE_PRODUCT: `127.0.0.1:${service.env.PORT}`,
    EDGE_CADDY_PORT: `${caddyHttps}`,
    EDGE_CADDY_HTTP_PORT: `${caddyHttp}`,
    EDGE_OPERATIONS: `127.0.0.1:${service.env.OPS_PORT}`,
    EDGE_ISSUER: 'internal',
    ...(uid !== 0 && { EDGE_USER: username, EDGE_GROUP: username }),
    XDG_DATA_HOME: folder,
    XDG_CONFIG_HOME: folder,
  };
  let written = '';
  const run = (program: string, ...args: string[]): ChildProcess => {
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    if (child.pid !== undefined) reapProcess(child.pid);
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (written += text));
    return child;
  };
  const children = [
    run(HAPROXY, '-db', '-f', join(SHIPPED, 'haproxy.cfg')),
    run(CADDY, 'run', '--adapter', 'caddyfile', '--config', join(SHIPPED, 'Caddyfile')),
  ];
  const stop = async (): Promise<void> => {
    for (const child of children) {
      if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'close');
    }
    rmSync(folder, { recursive: true, force: true });
  };
  const listens = async (port: number): Promise<boolean> => {
    const socket = connect(port, '127.0.0.1');
    const opened = await once(socket, 'connect').catch(() => null);
    socket.destroy();
    return opened !== null;
  };
  const listen = async () => (await Promise.all(ports.map(listens))).every(Boolean);
  await eventually('the proxies listen', listen).catch(async (error: unknown) => {
    await stop();
    throw new Error(`${error}\n${written}`);
  });
  return { port: https as number, ca: authority.cert, stop };
};
