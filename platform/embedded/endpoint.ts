import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { DatabaseLocation } from './location.ts';

/** Address on which PostgreSQL listens. */
export interface Endpoint {
  /** Folder of a Unix socket, or an address. */
  readonly host: string;
  readonly port: number;
  readonly settings: readonly string[];
}

const LOOPBACK = '127.0.0.1';
/** PostgreSQL requires a port for a Unix socket; it cannot collide, because the folder is private. */
export const SOCKET_NUMBER = 5432;
/** The kernel's limit on a Unix socket's path, without the final NUL. */
const SOCKET_PATH_BYTES = 107;

/**
 * Chooses a Unix socket, which is faster than TCP and private. If its path would be too long, it chooses a free loopback
 * port and stores it for later starts.
 */
export async function findEndpoint(location: DatabaseLocation): Promise<Endpoint> {
  const path = join(location.sockets, `.s.PGSQL.${SOCKET_NUMBER}`);
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES) {
    const settings = [
      'listen_addresses=',
      `unix_socket_directories=${quoted(location.sockets)}`,
      `port=${SOCKET_NUMBER}`,
    ];
    return { host: location.sockets, port: SOCKET_NUMBER, settings };
  }
  return onLoopback(notedPort(location) ?? (await notePort(location)));
}

/** Chooses another port after a different program has taken the stored one; null for a Unix socket. */
export async function moveEndpoint(location: DatabaseLocation, { host }: Endpoint): Promise<Endpoint | null> {
  return host === LOOPBACK ? onLoopback(await notePort(location)) : null;
}

const onLoopback = (port: number): Endpoint => ({
  host: LOOPBACK,
  port,
  settings: [`listen_addresses=${LOOPBACK}`, 'unix_socket_directories=', `port=${port}`],
});

/** The setting is a list, so a comma or space in the path must be quoted. */
const quoted = (folder: string): string => `"${folder.replaceAll('"', '""')}"`;

function notedPort({ portFile }: DatabaseLocation): number | null {
  try {
    return Number(readFileSync(portFile, 'utf8')) || null;
  } catch {
    return null;
  }
}

async function notePort({ portFile }: DatabaseLocation): Promise<number> {
  const port = await freePort();
  writeFileSync(portFile, `${port}\n`, { mode: 0o600 });
  return port;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, LOOPBACK, () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
