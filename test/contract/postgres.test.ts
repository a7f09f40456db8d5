import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { testDatabase } from '../support/database.ts';
import { describeEventStore } from './event-store.ts';

describeEventStore('PostgreSQL', async () => {
  const { url, drop } = await testDatabase();
  const { hostname, port } = new URL(url);
  return {
    host: hostname,
    port: Number(port || 5432),
    open: ({ proxyPort, ...options }) => {
      const address = new URL(url);
      if (proxyPort !== undefined) address.host = `127.0.0.1:${proxyPort}`;
      return createPostgresEventStore({ url: address.href, ...options });
    },
    stop: drop,
  };
});
