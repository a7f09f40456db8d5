import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createEventStoreDb } from '../../event-store/eventstoredb/store.ts';
import { describeEventStore } from './event-store.ts';
import { event, type TestedServer, unique } from './suite/context.ts';

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

/** Releases up to 0.2.0 wrote and read by the official client, and run beside this one during an upgrade. */
const describeOfficialClient = (url: string): void => {
  describe('an event of a release that uses the official client', () => {
    const made = event({ data: { z: 1, a: 'Zürich 🏢', n: [1, { b: null }] } });
    const { id, type, data, metadata } = made;
    const opened = () => {
      const [store, client] = [
        createEventStoreDb({ url, now: Date.now }),
        EventStoreDBClient.connectionString(url),
      ];
      onTestFinished(async () => {
        await store.close();
        await client.dispose();
      });
      return { store, client };
    };

    it('is read here, and the other way round, as the same bytes', async () => {
      const { store, client } = opened();
      const [theirs, ours] = [unique(), unique()];
      const written = jsonEvent({ id, type, data: { ...data }, metadata: { ...metadata } });
      const first = await client.appendToStream(theirs, [written], { expectedRevision: 'no_stream' });
      const second = await store.append(ours, 'no_stream', [made]);
      const [mine] = await Array.fromAsync(store.readStream(theirs));
      expect(mine).toEqual({ ...made, stream: theirs, revision: 0, position: first.position?.commit });
      expect(JSON.stringify(mine?.data)).toBe(JSON.stringify(data));
      const read = async (stream: string) => (await Array.fromAsync(client.readStream(stream))).at(0)?.event;
      const [one, other] = [await read(theirs), await read(ours)];
      expect(other).toMatchObject({
        id,
        type,
        data,
        metadata,
        isJson: true,
      });
      expect(other?.position?.commit).toBe(second.position);
      expect(JSON.stringify([other?.data, other?.metadata])).toBe(JSON.stringify([one?.data, one?.metadata]));
    });

    it('is recognised when the other one sends it again', async () => {
      const { store, client } = opened();
      const stream = unique();
      const written = jsonEvent({ id, type, data: { ...data }, metadata: { ...metadata } });
      await client.appendToStream(stream, [written], { expectedRevision: 'no_stream' });
      expect(await store.append(stream, 'no_stream', [made])).toMatchObject({ revision: 0 });
      expect(await Array.fromAsync(store.readStream(stream))).toHaveLength(1);
    });
  });
};

const { EVENTSTORE_URL } = process.env;
if (EVENTSTORE_URL !== undefined) {
  describeEventStore('EventStoreDB', async () => named(EVENTSTORE_URL));
  describeOfficialClient(EVENTSTORE_URL);
} else if (await containerCanStart()) {
  describeEventStore('EventStoreDB', startContainer);
} else {
  describe.skip('the event store contract on EventStoreDB without EVENTSTORE_URL and a Docker engine that has the image', () => {
    it('is skipped');
  });
}
