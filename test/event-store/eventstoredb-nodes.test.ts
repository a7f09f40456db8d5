import { randomUUID } from 'node:crypto';
import dns from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { parseConnectionString } from '../../event-store/eventstoredb/connection-string.ts';
import { createEventStoreDb } from '../../event-store/eventstoredb/store.ts';
import { type NewEvent, StoreUnavailable } from '../../event-store/port.ts';
import { eventually } from '../support/eventually.ts';
import {
  appendedAnswer,
  eventAnswer,
  type FakeCall,
  type FakeMember,
  type FakeNode,
  gossipAnswer,
  refusedAnswer,
  startFakeNode,
} from '../support/fake-node.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

const event = (): NewEvent => ({
  id: randomUUID(),
  type: 'tested.Tested.v1',
  data: {},
  metadata: { $correlationId: 'a', $causationId: 'b', at: '2026-11-22T00:00:00.000Z' },
});

/** Three nodes whose log has as many events as each says, and who name a leader each by its index. */
const startCluster = async (options = '') => {
  const log = [1, 1, 1];
  const names: (number | null)[] = [0, 0, 0];
  const unready = new Set<number>();
  const moved: FakeMember[] = [];
  const asked: string[] = [];
  const nodes: FakeNode[] = [];
  const proxies: TcpProxy[] = [];
  const answer = (index: number) => (call: FakeCall) => {
    asked.push(`${call.method} ${index}`);
    if (call.method === 'Gossip') {
      const members = proxies.map(({ port }, n) => ({ port, leads: n === names[index] }));
      call.reply(gossipAnswer([...members, ...moved]));
      call.end();
      return;
    }
    if (unready.has(index) && call.method === 'BatchAppend') {
      call.reply(refusedAnswer(call.message, 'Server Is Not Ready'));
    } else if (names[index] !== index) {
      const to = proxies[names[index] ?? -1];
      const leader = to && { 'leader-endpoint-host': '127.0.0.1', 'leader-endpoint-port': String(to.port) };
      call.end(5, { exception: 'not-leader', ...leader });
    } else if (call.method === 'BatchAppend') call.reply(appendedAnswer(call.message, index));
    else {
      const position = log[index] ?? 0;
      call.reply(eventAnswer({ id: randomUUID(), stream: 's-1', revision: 0, position, data: {} }));
      call.end();
    }
  };
  for (const index of [0, 1, 2]) {
    const node = await startFakeNode(answer(index));
    nodes.push(node);
    proxies.push(await startTcpProxy({ host: '127.0.0.1', port: node.port }));
  }
  const hosts = proxies.map(({ port }) => `127.0.0.1:${port}`).join();
  const store = createEventStoreDb({ url: `esdb://${hosts}?tls=false${options}`, now: () => 0 });
  onTestFinished(async () => {
    await store.close();
    for (const each of [...proxies, ...nodes]) await each.close();
  });
  return { log, names, unready, moved, asked, proxies, store };
};

describe('the leader of a cluster', () => {
  it('is the node that most of the nodes name', async () => {
    const { names, store } = await startCluster();
    names.splice(0, 3, 0, 1, 1);
    expect(await store.append('s-1', 'any', [event()])).toMatchObject({ revision: 1 });
  });

  it('is found again when it is lost', async () => {
    const { names, proxies, store } = await startCluster();
    await store.append('s-1', 'no_stream', [event()]);
    await proxies[0]?.refuse();
    names.splice(0, 3, null, 2, 2);
    expect(await store.append('s-1', 'no_stream', [event()])).toMatchObject({ revision: 2 });
    expect(await store.head()).toBe(1n);
  });

  it('is found again within five seconds when it is silent', async () => {
    const { names, asked, proxies, store } = await startCluster();
    await store.append('s-1', 'no_stream', [event()]);
    await store.head();
    proxies[0]?.freeze('everything');
    names.splice(0, 3, 0, 1, 1);
    const began = performance.now();
    let head: unknown = null;
    while (head === null && performance.now() - began < 10_000) head = await store.head().catch(() => null);
    expect(asked).toContain('Read 1');
    expect(performance.now() - began).toBeLessThan(6_000);
  }, 20_000);

  it('is found again when the old one answers, but knows that it is cut off from the others', async () => {
    const { names, unready, store } = await startCluster();
    await store.append('s-1', 'no_stream', [event()]);
    unready.add(0);
    names.splice(0, 3, null, 1, 1);
    expect(await store.append('s-1', 'no_stream', [event()])).toMatchObject({ revision: 1 });
  });

  it('is found after all nodes have moved, while the old addresses are still told of as dead', async () => {
    const { moved, store } = await startCluster();
    for (const port of [1, 2, 3]) moved.push({ port, leads: false, isAlive: false, age: 300 });
    expect(await store.append('s-1', 'no_stream', [event()])).toMatchObject({ revision: 0 });
  });

  it('is not one that a minority names, whose other nodes died a moment ago', async () => {
    const { names, moved, store } = await startCluster();
    names.splice(0, 3, 0, null, null);
    for (const port of [1, 2]) moved.push({ port, leads: false, isAlive: false, age: 3 });
    await expect(store.append('s-1', 'no_stream', [event()])).rejects.toThrow(StoreUnavailable);
  });

  it('is the one that a node names that leads no more', async () => {
    const { names, asked, store } = await startCluster();
    await store.append('s-1', 'no_stream', [event()]);
    names.splice(0, 3, 2, 2, 2);
    expect(await store.append('s-1', 'no_stream', [event()])).toMatchObject({ revision: 2 });
    expect(asked.filter((one) => one === 'Gossip 0')).toHaveLength(1);
  });
});

it('opens no connection after it was closed while a leader was sought', async () => {
  const { names, proxies, store } = await startCluster();
  names.splice(0, 3, null, null, null);
  const outcome = store.append('s-1', 'no_stream', [event()]).catch((error: unknown) => error);
  const other = store.head().catch((error: unknown) => error);
  await eventually('the nodes were asked', () => proxies.every((proxy) => proxy.connections() > 0));
  await store.close();
  expect([await outcome, await other]).toEqual([expect.any(StoreUnavailable), expect.any(StoreUnavailable)]);
  await eventually('all connections are closed', () => proxies.every((proxy) => proxy.connections() === 0));
});

describe('discovery', () => {
  /** A store that finds its only node by the name, and how the node was asked. */
  const discovered = async (name: string, host?: string) => {
    const node: FakeNode = await startFakeNode(
      (call) => {
        if (call.method === 'Gossip') call.reply(gossipAnswer([{ port: node.port, leads: true, host }]));
        else call.reply(eventAnswer({ id: randomUUID(), stream: 's-1', revision: 0, position: 7, data: {} }));
        call.end();
      },
      undefined,
      host,
    );
    const url = `esdb+discover://${name.replace('PORT', String(node.port))}?tls=false`;
    const store = createEventStoreDb({ url, now: () => 0 });
    onTestFinished(async () => {
      await store.close();
      await node.close();
    });
    return store;
  };

  it('finds the nodes behind a name', async () => {
    expect(await (await discovered('localhost:PORT')).head()).toBe(7n);
  });

  const hasIpv6 = Object.values(networkInterfaces()).some((list) =>
    list?.some(({ address }) => address === '::1'),
  );
  it.skipIf(!hasIpv6)('finds a node at an address of IPv6', async () => {
    expect(await (await discovered('[::1]:PORT', '::1')).head()).toBe(7n);
  });

  it('finds the nodes behind one name while another one is unknown', async () => {
    expect(await (await discovered('missing.invalid,localhost:PORT')).head()).toBe(7n);
  });

  it('fails within the deadline while DNS does not answer, and never waits for two answers about a name', async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const lookup = vi.spyOn(dns, 'lookup').mockImplementation(() => promise as never);
    onTestFinished(() => lookup.mockRestore());
    const store = await discovered('localhost:PORT');
    const failed = store.head();
    await expect(failed).rejects.toThrow(StoreUnavailable);
    await expect(failed).rejects.toThrow('localhost');
    expect(lookup).toHaveBeenCalledTimes(1);
    resolve([{ address: '127.0.0.1', family: 4 }]);
    expect(await store.head()).toBe(7n);
  }, 15_000);
});

describe('a leader that was deposed while nothing was heard of it', () => {
  it('is not believed: the head and streams are read from the new leader', async () => {
    const { log, names, store } = await startCluster();
    expect(await store.head()).toBe(1n);
    // Another node leads and has taken an append; the old leader still believes in itself.
    log.splice(1, 1, 2);
    names.splice(0, 3, 0, 1, 1);
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const [head, [read]] = await Promise.all([store.head(), Array.fromAsync(store.readStream('s-1'))]);
    expect([head, read?.position]).toEqual([2n, 2n]);
  });

  it('is asked no more than once for all reads of a silence, and not at all while it goes on answering', async () => {
    const { asked, store } = await startCluster();
    await store.head();
    const before = asked.filter((one) => one.startsWith('Gossip')).length;
    for (let n = 0; n < 20; n += 1) await store.head();
    expect(asked.filter((one) => one.startsWith('Gossip'))).toHaveLength(before);
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await Promise.all(Array.from({ length: 20 }, () => store.head()));
    expect(asked.filter((one) => one.startsWith('Gossip'))).toHaveLength(before + 3);
  });
});

describe('a connection string', () => {
  it('names nodes, a user, certificates and times in the words of the official clients', () => {
    const parsed = parseConnectionString(
      'esdb+discover://the%40user:p%3Ass@a.example,[::1]:1113,10.0.0.1:2?tls=true&TLSVERIFYCERT=false&keepAliveInterval=7000&keepAliveTimeout=3000&nodePreference=leader',
    );
    expect(parsed).toMatchObject({
      discover: true,
      tls: true,
      tlsOptions: { rejectUnauthorized: false },
      authorization: `Basic ${Buffer.from('the@user:p:ss').toString('base64')}`,
      keepAliveIntervalMs: 7_000,
      keepAliveTimeoutMs: 3_000,
      endpoints: [
        { host: 'a.example', port: 2113 },
        { host: '::1', port: 1113 },
        { host: '10.0.0.1', port: 2 },
      ],
    });
    expect(parseConnectionString('esdb://a?keepAliveInterval=-1').keepAliveIntervalMs).toBe(null);
    expect(parseConnectionString('esdb://a?tls=false')).toMatchObject({ tls: false, authorization: null });
  });

  it.each([
    'esdb://user:hunter2@',
    'esdb://user:hunter2@a:b:c',
    'esdb://user:hunter2@a:0',
    'esdb://user:hunter2%@a',
    'esdb://user:hunter2@a?userKeyFile=/nowhere/hunter2',
  ])('%s is refused by an error that holds no part of it', (text) => {
    expect(() => parseConnectionString(text)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('hunter2') }),
    );
  });
});
