import { describe, it } from 'vitest';
import { createEventStoreDb } from '../../event-store/eventstoredb/store.ts';
import { describeEventStore } from './event-store.ts';
import type { TestedServer } from './suite/context.ts';

const IMAGE = 'eventstore/eventstore:24.10';
const PORT = 2113;

const at = (host: string, port: number, settings: string, stop: () => Promise<void>): TestedServer => ({
  address: { host, port },
  open: ({ proxyPort, ...options }) => {
    const address = proxyPort === undefined ? `${host}:${port}` : `127.0.0.1:${proxyPort}`;
    return createEventStoreDb({ url: `esdb://${address}${settings}`, ...options });
  },
  stop,
});

/** Uses one node without TLS, named by `EVENTSTORE_URL`: the proxy's address would not match a certificate. */
const named = (url: string): TestedServer => {
  const { hostname, port, pathname, search } = new URL(url);
  return at(hostname, Number(port || PORT), `${pathname}${search}`, async () => undefined);
};

const startContainer = async (): Promise<TestedServer> => {
  const { GenericContainer, Wait } = await import('testcontainers');
  const container = await new GenericContainer(IMAGE)
    .withCommand(['--insecure', '--run-projections=None', '--mem-db'])
    .withExposedPorts(PORT)
    .withWaitStrategy(Wait.forHttp('/health/live', PORT).forStatusCode(204))
    .start();
  return at(container.getHost(), container.getMappedPort(PORT), '?tls=false', async () => {
    await container.stop();
  });
};

/** Whether a Docker engine answers that has the image, or can pull it, and can start what removes containers afterwards. */
const containerCanStart = async (): Promise<boolean> => {
  try {
    const { getContainerRuntimeClient, getReaper, ImageName } = await import('testcontainers');
    const client = await getContainerRuntimeClient();
    const image = ImageName.fromString(IMAGE);
    if (!(await client.image.exists(image))) await client.image.pull(image);
    await getReaper(client);
    return true;
  } catch {
    return false;
  }
};

const { EVENTSTORE_URL } = process.env;
if (EVENTSTORE_URL !== undefined) {
  describeEventStore('EventStoreDB', async () => named(EVENTSTORE_URL));
} else if (await containerCanStart()) {
  describeEventStore('EventStoreDB', startContainer);
} else {
  describe.skip('the event store contract on EventStoreDB without EVENTSTORE_URL and a Docker engine that has the image', () => {
    it('is skipped');
  });
}
