import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createAppender } from '../../event-store/eventstoredb/append.ts';
import { parseConnectionString } from '../../event-store/eventstoredb/connection-string.ts';
import { type Connection, openConnection } from '../../event-store/eventstoredb/grpc.ts';
import type { Nodes } from '../../event-store/eventstoredb/nodes.ts';
import { createReader } from '../../event-store/eventstoredb/read.ts';
import { createEventStoreDb } from '../../event-store/eventstoredb/store.ts';
import {
  type Batch,
  type NewEvent,
  OutcomeUnknown,
  StoreBusy,
  StoreUnavailable,
} from '../../event-store/port.ts';
import { eventually } from '../support/eventually.ts';
import {
  appendedAnswer,
  eventAnswer,
  type FakeCall,
  type FakeNode,
  startFakeNode,
} from '../support/fake-node.ts';

const USER = 'the-user';
const PASSWORD = 'the-password';

const event = (): NewEvent => ({
  id: randomUUID(),
  type: 'tested.Tested.v1',
  data: { tested: true },
  metadata: { $correlationId: 'a', $causationId: 'b', at: '2026-11-22T00:00:00.000Z' },
});

/** A store on a node that a test answers for. */
const storeOn = async (answer: (call: FakeCall, node: FakeNode) => void, deadlineMs = 1_000) => {
  const node: FakeNode = await startFakeNode((call) => answer(call, node));
  const url = `esdb://${USER}:${PASSWORD}@127.0.0.1:${node.port}?tls=false`;
  const stalls: Error[] = [];
  const store = createEventStoreDb({
    url,
    now: () => 0,
    deadlineMs,
    onStall: (error) => void stalls.push(error),
  });
  onTestFinished(async () => {
    await store.close();
    await node.close();
  });
  return { node, store, stalls };
};

const outcomeOf = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);
const numbered = (n: number, data: object = { n }) =>
  eventAnswer({ id: randomUUID(), stream: 'tested-1', revision: n, position: n + 1, data });
const head = (flag: number, length: number): Buffer => {
  const bytes = Buffer.alloc(5, flag);
  bytes.writeUInt32BE(length, 1);
  return bytes;
};

describe('an append', () => {
  it.each<[string, (call: FakeCall, node: FakeNode) => void]>([
    ['the node ends the call with status 0', ({ end }) => end(0)],
    [
      'the node ends the call with a failure in the trailers alone',
      ({ end }) => end(13, { 'grpc-message': 'no' }),
    ],
    ['the node resets the call', ({ stream }) => stream.close(2)],
    ['the connection breaks', (_, { cut }) => cut()],
    [
      'the node says that the connection closes, and closes it',
      (_, { goAway, cut }) => {
        goAway();
        setTimeout(cut, 50);
      },
    ],
    ['a frame claims more than 20 MiB', ({ write }) => write(head(0, 2_000_000_000))],
    [
      'a frame claims more than comes',
      ({ write, end }) => {
        write(head(0, 1_000));
        end(0);
      },
    ],
    ['a message is compressed', ({ write }) => write(head(1, 0))],
    ['a message ends early', ({ message, reply }) => reply(appendedAnswer(message).slice(0, -3))],
    ['the answer is not gRPC', ({ stream }) => stream.respond({ ':status': 502 }, { endStream: true })],
    ['an answer names another append', ({ message, reply }) => reply(appendedAnswer(message).slice(40))],
    ['there is no answer', () => undefined],
  ])('is an unknown outcome, and no refusal, when %s', async (_, fault) => {
    let appends = 0;
    const { store } = await storeOn((call, node) => {
      appends += 1;
      fault(call, node);
    });
    expect(await outcomeOf(store.append('s-1', 'any', [event()]))).toBeInstanceOf(OutcomeUnknown);
    // It may have been stored, and at "any" a resend would store it twice.
    expect(appends).toBe(1);
  });

  it('is resent with the same ids at the same revision after a broken connection, and then found', async () => {
    const asked: Buffer[] = [];
    const { store } = await storeOn(({ message, reply }, { cut }) => {
      if (asked.push(message) === 1) cut();
      else reply(appendedAnswer(message, 4));
    });
    expect(await store.append('s-1', 3, [event()])).toEqual({ revision: 4, position: 70n });
    const [first, second] = asked.map((message) =>
      streams.BatchAppendReq.deserializeBinary(message).toObject(),
    );
    expect(second?.proposedMessagesList).toEqual(first?.proposedMessagesList);
    expect(second?.options).toMatchObject({ streamPosition: '3' });
  });

  it('drops the late answer to an append that was given up', async () => {
    const waiting: FakeCall[] = [];
    const { store } = await storeOn((call) => {
      if (waiting.length > 0) call.reply(appendedAnswer(call.message, 9));
      waiting.push(call);
    }, 300);
    expect(await outcomeOf(store.append('s-1', 'any', [event()]))).toBeInstanceOf(OutcomeUnknown);
    const [late] = waiting;
    late?.reply(appendedAnswer(late.message, 1));
    expect(await store.append('s-1', 'any', [event()])).toEqual({ revision: 9, position: 70n });
  });

  it('completes on a connection that the node is closing, and the next one opens another', async () => {
    const { store, node } = await storeOn(({ message, reply }, { goAway }) => {
      goAway();
      setTimeout(() => reply(appendedAnswer(message)), 50);
    });
    await store.append('s-1', 'any', [event()]);
    await store.append('s-1', 'any', [event()]);
    expect(node.connections()).toBe(2);
  });

  it.each([
    ['small', 1_024, ''],
    ['large', 16, 'x'.repeat(20_000)],
  ])(
    'waits for two seconds while %s ones of the highest number are under way, and is refused then',
    async (_, most, text) => {
      let asked = 0;
      const { store } = await storeOn(() => {
        asked += 1;
      }, 8_000);
      const outcomes = Array.from({ length: most + 5 }, (_, n) =>
        outcomeOf(store.append(`s-${n}`, 'any', [{ ...event(), data: { text } }])),
      );
      const began = performance.now();
      expect(await Promise.race(outcomes)).toBeInstanceOf(StoreBusy);
      expect(performance.now() - began).toBeGreaterThan(1_900);
      for (const outcome of outcomes.slice(most)) expect(await outcome).toBeInstanceOf(StoreBusy);
      expect(asked).toBe(most);
    },
    20_000,
  );

  it('of ten thousand at once ends with an answer each', async () => {
    const { store } = await storeOn(({ message, reply }) => reply(appendedAnswer(message)), 10_000);
    const appends = Array.from({ length: 10_000 }, (_, n) =>
      outcomeOf(store.append(`s-${n}`, 'no_stream', [event()])),
    );
    // What waits for longer than 2 s on a busy machine is refused.
    const failed = (await Promise.all(appends)).filter((outcome) => outcome instanceof Error);
    for (const outcome of failed) expect(outcome).toBeInstanceOf(StoreBusy);
    expect(failed.length).toBeLessThan(9_000);
  });
});

describe('a read', () => {
  it.each<[string, (call: FakeCall) => void]>([
    [
      'ends within a message',
      ({ write, end }) => {
        write(head(0, 1_000));
        end(0);
      },
    ],
    [
      'has a message that ends early',
      ({ reply, end }) => {
        reply(numbered(1).slice(0, -3));
        end(0);
      },
    ],
    ['has no end', ({ reply }) => reply(numbered(1))],
  ])('fails when its answer %s', async (_, fault) => {
    const { store } = await storeOn(fault, 500);
    expect(await outcomeOf(Array.fromAsync(store.readStream('s-1')))).toBeInstanceOf(StoreUnavailable);
  });

  it('is repeated when its connection breaks', async () => {
    let reads = 0;
    const { store } = await storeOn(({ reply, end }, { cut }) => {
      reads += 1;
      reply(numbered(1));
      if (reads === 1) cut();
      else end();
    });
    expect(await Array.fromAsync(store.readStream('s-1'))).toHaveLength(1);
  });
});

describe('a follower', () => {
  it('takes events off the node while its own consumer is busy, and does not hold up reads when it is full', async () => {
    const EVENTS = 40;
    let sent = 0;
    const large = { text: 'x'.repeat(1_000_000) };
    const { store } = await storeOn(({ message, reply, end }) => {
      if (message.includes('tested-1')) {
        reply(numbered(1));
        end();
        return;
      }
      for (; sent < EVENTS; sent += 1) reply(numbered(sent, large));
    });
    const ending = new AbortController();
    onTestFinished(() => ending.abort());
    const following = store.follow({ after: null, signal: ending.signal }) as AsyncGenerator<Batch>;
    const seen = (await following.next()).value?.events.length ?? 0;
    expect(await Array.fromAsync(store.readStream('tested-1'))).toHaveLength(1);
    let rest = 0;
    for await (const { events } of following) {
      rest += events.length;
      if (seen + rest >= EVENTS) break;
    }
    expect(seen + rest).toBe(EVENTS);
  });

  it('goes on after the last event that it has seen when a subscription ends or sends what is no message', async () => {
    const asked: Buffer[] = [];
    const { store, stalls } = await storeOn(({ message, reply, write, end }) => {
      const round = asked.push(message);
      if (round <= 4) reply(numbered(round));
      if (round === 1) end(14, { 'grpc-message': 'gone' });
      if (round === 2) write(head(1, 4));
      if (round === 3) end(0);
    });
    const ending = new AbortController();
    onTestFinished(() => ending.abort());
    const positions: bigint[] = [];
    for await (const { position } of store.follow({ after: null, signal: ending.signal })) {
      if (positions.push(position) === 4) break;
    }
    expect(positions).toEqual([2n, 3n, 4n, 5n]);
    expect(stalls.map(({ message }) => message)).toEqual(['gone', 'the server sent a compressed message']);
  });

  it('that ends breaks neither reads nor other followers', async () => {
    const { store, node } = await storeOn(({ message, reply, end }) => {
      reply(numbered(1));
      if (message.includes('tested-1')) end();
    });
    const ending = new AbortController();
    for await (const _ of store.follow({ after: null, signal: ending.signal })) ending.abort();
    expect(await Array.fromAsync(store.readStream('tested-1'))).toHaveLength(1);
    expect(node.connections()).toBe(1);
  });
});

it('asks a node nothing once the time of the call has passed while the leader was sought, and says that nothing was sent', async () => {
  const asked: string[] = [];
  const node = {
    isClosed: () => false,
    call: (method: string) => {
      asked.push(method);
      return { write: () => undefined };
    },
    request: async (method: string) => void asked.push(method),
  } as unknown as Connection;
  const nodes = {
    connection: async (_: string, ms: number) => {
      for (const end = performance.now() + ms; performance.now() <= end; );
      return node;
    },
    failed: () => undefined,
    confirm: async () => true,
  } as unknown as Nodes;
  const append = createAppender(nodes, 100).append('s-1', 'any', [event()]);
  expect(await outcomeOf(append)).toBeInstanceOf(StoreUnavailable);
  expect(await outcomeOf(createReader(nodes, () => 0, 100).head())).toBeInstanceOf(StoreUnavailable);
  expect(asked).toEqual([]);
});

it('sends the user and the password with every call, and names them in no error', async () => {
  const sent: (string | undefined)[] = [];
  const { store, stalls } = await storeOn(({ headers, end }) => {
    sent.push(headers.authorization);
    end(16, { 'grpc-message': 'denied' });
  }, 500);
  const ending = new AbortController();
  const following = Array.fromAsync(store.follow({ after: null, signal: ending.signal }));
  const errors = [
    await outcomeOf(store.append('s-1', 'any', [event()])),
    await outcomeOf(store.head()),
    await outcomeOf(Array.fromAsync(store.readStream('s-1'))),
  ];
  await eventually('the follower has failed', () => stalls.length > 0);
  ending.abort();
  await following;
  const basic = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
  expect(new Set(sent)).toEqual(new Set([`Basic ${basic}`]));
  const told = [...errors, ...stalls]
    .map((error) => `${(error as Error).stack} ${JSON.stringify(error)}`)
    .join();
  for (const secret of [PASSWORD, basic]) expect(told).not.toContain(secret);
});

it('deletes without a word about a connection string with options of its own, a user and a password', async () => {
  const node: FakeNode = await startFakeNode(({ end }) => end(12));
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  onTestFinished(() => warned.mockRestore());
  const url = `esdb://${USER}:${PASSWORD}@127.0.0.1:${node.port}?tls=False&tlsVerifyCert=false&another=1`;
  const store = createEventStoreDb({ url, now: () => 0, deadlineMs: 1_000 });
  onTestFinished(async () => {
    await store.close();
    await node.close();
  });
  const failed = await outcomeOf(store.expire('s-1', 0));
  expect(inspect([failed, warned.mock.calls], { depth: null })).not.toContain(PASSWORD);
  // The node was asked.
  expect(node.connections()).toBe(1);
});

it('closes while its connections are being made, and the process goes on', async () => {
  const { node } = await storeOn(() => undefined);
  const thrown: unknown[] = [];
  const note = (error: unknown): void => void thrown.push(error);
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException').on('uncaughtException', note);
  onTestFinished(() => {
    process.off('uncaughtException', note);
    for (const other of others) process.on('uncaughtException', other);
  });
  const settings = parseConnectionString(`esdb://127.0.0.1:${node.port}?tls=false`);
  const endpoint = { host: '127.0.0.1', port: node.port };
  for (let n = 0; n < 5; n += 1)
    await new Promise<void>((resolve) => openConnection(endpoint, settings, resolve).close());
  await openConnection(endpoint, settings, () => undefined)
    .request('/Read', new Uint8Array(), 50, () => undefined)
    .catch(() => undefined);
  expect(thrown).toEqual([]);
});

it('closes within two seconds during calls that hang', async () => {
  const { store } = await storeOn(() => undefined, 60_000);
  const outcomes = [
    outcomeOf(store.append('s-1', 'any', [event()])),
    outcomeOf(store.head()),
    outcomeOf(Array.fromAsync(store.follow({ after: null, signal: new AbortController().signal }))),
  ];
  const began = performance.now();
  await store.close();
  const [append, read, followed] = await Promise.all(outcomes);
  expect(performance.now() - began).toBeLessThan(2_500);
  expect(append).toBeInstanceOf(OutcomeUnknown);
  expect(read).toBeInstanceOf(StoreUnavailable);
  expect(followed).toEqual([]);
});
