import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { testDatabase } from '../support/database.ts';
import { addressOf, throughProxy } from '../support/database-proxy.ts';
import { describeEventStore } from './event-store.ts';

describeEventStore('PostgreSQL', async () => {
  const { url, drop } = await testDatabase();
  return {
    address: addressOf(url),
    open: ({ proxyPort, ...options }) =>
      createPostgresEventStore({
        url: proxyPort === undefined ? url : throughProxy(url, proxyPort),
        ...options,
      }),
    stop: drop,
  };
});
