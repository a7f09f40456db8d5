import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { limitPipelining } from '../../http/pipelining.ts';
import { createTurns, goOnIn } from '../../http/turns.ts';

let now: number;
beforeEach(() => {
  now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => void vi.restoreAllMocks());

/** A server whose requests take a millisecond each. @returns whose have been served, and a function with which new connections ask */
const aBusyServer = () => {
  const served: string[] = [];
  const serve = limitPipelining(
    (request) => {
      served.push(request.url ?? '');
      now += 1;
    },
    { turns: createTurns(), ownerOf: (request) => request.url ?? '' },
  );
  const ask = (owner: string, connections: number, pipelined = 1): void => {
    for (let nth = 0; nth < connections; nth += 1) {
      const socket = { destroyed: false, writableLength: 0, pause: () => socket, resume: () => socket };
      for (let request = 0; request < pipelined; request += 1) {
        const response = Object.assign(new EventEmitter(), { shouldKeepAlive: true });
        const asked = { socket, url: owner } as unknown as IncomingMessage;
        serve(asked, response as unknown as ServerResponse);
      }
    }
  };
  return { served, ask };
};

it('serves the requests of hundreds of connections a few in a turn, and all in the end', async () => {
  const { served, ask } = aBusyServer();
  ask('one', 300);
  const lengths = [0, served.length];
  while (served.length < 300) {
    await setImmediate();
    lengths.push(served.length);
  }
  const steps = lengths.slice(1).map((length, turn) => length - (lengths[turn] as number));
  expect(Math.max(...steps)).toBeLessThanOrEqual(4);
});

it('serves a late request of one owner before the others of an owner with many', async () => {
  const { served, ask } = aBusyServer();
  ask('many', 300);
  ask('few', 2);
  const before = served.length;
  await setImmediate();
  await setImmediate();
  await setImmediate();
  const after = served.slice(before);
  expect(after.filter((owner) => owner === 'few')).toHaveLength(2);
  expect(after.length).toBeLessThan(12);
});

it('serves the requests of a connection that is to be closed while others fill all turns', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  const { served, ask } = aBusyServer();
  for (let nth = 0; nth < 40; nth += 1) ask('pipelines', 1, 200);
  for (let turn = 0; turn < 50; turn += 1) await setImmediate();
  const before = served.length;
  for (let round = 0; round < 20; round += 1) {
    ask('flood', 10);
    vi.advanceTimersByTime(1);
    await setImmediate();
    vi.advanceTimersByTime(1);
  }
  vi.useRealTimers();
  const after = served.slice(before).filter((owner) => owner === 'pipelines');
  expect(after.length).toBeGreaterThanOrEqual(20);
});

it('counts what a request that waited leaves to promises before it serves the next', async () => {
  let served = 0;
  const serve = limitPipelining(() => {
    void Promise.resolve().then(() => {
      served += 1;
      now += 1;
    });
  });
  for (let nth = 0; nth < 100; nth += 1) {
    const socket = { destroyed: false, writableLength: 0, pause: () => socket, resume: () => socket };
    const response = Object.assign(new EventEmitter(), { shouldKeepAlive: true });
    serve({ socket } as unknown as IncomingMessage, response as unknown as ServerResponse);
    if (nth === 0) now += 3;
  }
  await setImmediate();
  expect(served).toBeLessThanOrEqual(4);
  while (served < 100) await setImmediate();
});

it('runs what comes to wait in a turn in the next one', async () => {
  const { inNext } = createTurns();
  let runs = 0;
  const again = () => {
    runs += 1;
    inNext('one', again);
  };
  again();
  for (let turn = 1; turn < 5; turn += 1) {
    await setImmediate();
    expect(runs).toBe(1 + turn);
  }
});

it('runs what waits in its own asynchronous context', async () => {
  const context = new AsyncLocalStorage<number>();
  const seen: [number, number | undefined][] = [];
  const turns = createTurns();
  const goOn = goOnIn({ turns, ownerOf: () => '' });
  const serve = limitPipelining((request) => seen.push([Number(request.url), context.getStore()]), {
    turns,
    ownerOf: () => '',
  });
  turns.hasTime();
  now += 3;
  for (let nth = 0; nth < 20; nth += 2) {
    context.run(nth, () => goOn({} as IncomingMessage, () => seen.push([nth, context.getStore()])));
    const socket = { destroyed: false, writableLength: 0, pause: () => socket, resume: () => socket };
    const response = new EventEmitter() as unknown as ServerResponse;
    const request = { socket, url: `${nth + 1}` } as unknown as IncomingMessage;
    context.run(nth + 1, () => serve(request, response));
  }
  await setImmediate();
  expect(seen).toHaveLength(20);
  for (const [own, found] of seen) expect(found).toBe(own);
});

it('forgets the requests that wait of a connection that has ended', async () => {
  let closed = 0;
  const serve = limitPipelining(() => undefined);
  const connection = (count: number) => {
    const socket = { destroyed: false, writableLength: 0, pause: () => socket, resume: () => socket };
    for (let nth = 0; nth < count; nth += 1) {
      const response = Object.assign(new EventEmitter(), { shouldKeepAlive: true });
      serve({ socket } as unknown as IncomingMessage, response as unknown as ServerResponse);
      if (!response.shouldKeepAlive) closed += 1;
    }
    return socket;
  };
  for (let round = 0; round < 5; round += 1) {
    const ended = Array.from({ length: 20 }, () => connection(100));
    for (const socket of ended) socket.destroyed = true;
    for (let turn = 0; turn < 12; turn += 1) await setImmediate();
  }
  expect(closed).toBe(0);
});
