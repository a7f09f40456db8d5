import type { NetConnectOpts } from 'node:net';
import { join } from 'node:path';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/** The server of a connection string, whose host may be the folder of a Unix socket. */
export const addressOf = (connection: string): NetConnectOpts => {
  const url = new URL(connection);
  const host = decodeURIComponent(url.searchParams.get('host') ?? url.hostname);
  const port = Number(url.searchParams.get('port') ?? (url.port || 5432));
  return host.startsWith('/') ? { path: join(host, `.s.PGSQL.${port}`) } : { host, port };
};

/** The connection string through a proxy that listens at a port of 127.0.0.1. */
export const throughProxy = (connection: string, port: number): string => {
  const url = new URL(connection);
  url.searchParams.delete('host');
  url.searchParams.delete('port');
  url.host = `127.0.0.1:${port}`;
  return url.href;
};

/** A proxy before a database, and the connection string through it. */
export const startDatabaseProxy = async (
  connection: string,
): Promise<{ readonly proxy: TcpProxy; readonly url: string }> => {
  const proxy = await startTcpProxy(addressOf(connection));
  return { proxy, url: throughProxy(connection, proxy.port) };
};
