import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { DatabaseLocation } from './location.ts';

/** Where PostgreSQL listens. */
export interface Endpoint {
  /** The folder of a Unix socket, or an address. */
  readonly host: string;
  readonly port: number;
  readonly settings: readonly string[];
}

const LOOPBACK = '127.0.0.1';
/** A Unix socket needs a number too, but shares it with nobody: the folder is its own. */
export const SOCKET_NUMBER = 5432;
/** The kernel's limit on the path of a Unix socket, its final NUL left out. */
const SOCKET_PATH_BYTES = 107;

/**
 * A Unix socket, which is faster than TCP and open to nobody else; where its path would be too long, a free port
 * on loopback, noted and taken again by every later start.
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

/** Another port than the noted one, which some other program has taken meanwhile; null for a Unix socket. */
export async function moveEndpoint(location: DatabaseLocation, { host }: Endpoint): Promise<Endpoint | null> {
  return host === LOOPBACK ? onLoopback(await notePort(location)) : null;
}

const onLoopback = (port: number): Endpoint => ({
  host: LOOPBACK,
  port,
  settings: [`listen_addresses=${LOOPBACK}`, 'unix_socket_directories=', `port=${port}`],
});

/** The setting is a list: a comma or a space in the folder's name must not split it. */
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
  writeFileSync(portFile, `${port}\n`, { mode: 0o644 });
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
