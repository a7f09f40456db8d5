import { join } from 'node:path';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { testDatabase } from '../support/database.ts';
import { describeEventStore } from './event-store.ts';
import type { TestedServer } from './suite/context.ts';

/** The server of a connection string, whose host may be the folder of a Unix socket. */
const addressOf = (url: URL): TestedServer['address'] => {
  const host = decodeURIComponent(url.searchParams.get('host') ?? url.hostname);
  const port = Number(url.searchParams.get('port') ?? (url.port || 5432));
  return host.startsWith('/') ? { path: join(host, `.s.PGSQL.${port}`) } : { host, port };
};

const proxied = (url: string, port: number): string => {
  const address = new URL(url);
  address.searchParams.delete('host');
  address.searchParams.delete('port');
  address.host = `127.0.0.1:${port}`;
  return address.href;
};

describeEventStore('PostgreSQL', async () => {
  const { url, drop } = await testDatabase();
  return {
    address: addressOf(new URL(url)),
    open: ({ proxyPort, ...options }) =>
      createPostgresEventStore({ url: proxyPort === undefined ? url : proxied(url, proxyPort), ...options }),
    stop: drop,
  };
});
