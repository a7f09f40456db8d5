import { IncomingMessage, type ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { limitChunks, MAX_CHUNKS, MAX_CHUNKS_A_TURN } from '../../http/chunks.ts';
import { aServer, authorized, exchangeBytes } from './shell.ts';

const CHUNK = '1\r\n \r\n';
const headOf = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorized.authorization}\r\n` +
  'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n';
const BODY = '{"ip":"8.8.8.8"}';
/** Each of its characters is a chunk. */
const bodyIn = (text: string): string => `${[...text].map((one) => `1\r\n${one}\r\n`).join('')}0\r\n\r\n`;

let app: FastifyInstance;

beforeEach(async () => {
  app = aServer();
  await app.listen({ port: 0, host: '127.0.0.1' });
});

afterEach(async () => {
  vi.restoreAllMocks();
  await app.close();
});

it.each(['/v1/lookup', '/nothing'])(
  'takes few of very many chunks that are sent at once to %s',
  async (path) => {
    const taken = vi.spyOn(IncomingMessage.prototype, 'push');
    await exchangeBytes(app, headOf(path) + CHUNK.repeat(10_000));

    expect(taken.mock.calls.length).toBeLessThanOrEqual(MAX_CHUNKS_A_TURN);
  },
);

it('refuses a body of very many chunks that are sent at once', async () => {
  const text = await exchangeBytes(app, headOf('/v1/lookup') + CHUNK.repeat(10_000));

  expect(text).toMatch(/^HTTP\/1\.1 400 [\s\S]*"invalid_body"[\s\S]*too many chunks/);
});

it('serves a body of many chunks, also after connections that sent too many', async () => {
  for (let n = 0; n < 3; n += 1) await exchangeBytes(app, headOf('/v1/lookup') + CHUNK.repeat(10_000));
  const text = await exchangeBytes(app, headOf('/v1/lookup') + bodyIn(BODY + ' '.repeat(100)));

  expect(text).toMatch(/^HTTP\/1\.1 200 [\s\S]*"body":\{"ip":"8\.8\.8\.8"\}/);
});

/** Pushes chunks over many turns, then the end. Returns the bytes that were kept, in how many parts, and the refusals. */
const pushed = async (headers: IncomingMessage['headers'], chunk: Buffer, times: number) => {
  const push = vi.fn((_: Buffer | null) => true);
  const refuse = vi.fn();
  const request = { headers, socket: { pause: vi.fn() }, push };
  limitChunks(() => undefined, refuse)(request as unknown as IncomingMessage, {} as ServerResponse);
  for (let n = 1; n <= times; n += 1) {
    request.push(chunk);
    if (n % MAX_CHUNKS_A_TURN === 0) await setImmediate();
  }
  request.push(null);
  const parts = push.mock.calls.flatMap(([part]) => part ?? []);
  return { bytes: Buffer.concat(parts).toString(), parts: parts.length, refused: refuse.mock.calls.length };
};

it.each([
  ['chunks', { 'transfer-encoding': 'chunked' }],
  ['segments', { 'content-length': '24576' }],
])('refuses a body of very many %s of a byte that are sent over many turns', async (_, headers) => {
  const { parts, refused } = await pushed(headers, Buffer.from('x'), MAX_CHUNKS + 100);
  expect(refused).toBe(1);
  expect(parts).toBeLessThanOrEqual(MAX_CHUNKS / 512);
});

it('keeps a body of many short chunks in few parts', async () => {
  const { bytes, parts } = await pushed({ 'transfer-encoding': 'chunked' }, Buffer.from('abc'), 1_000);
  expect(bytes).toBe('abc'.repeat(1_000));
  expect(parts).toBe(6);
});

it('takes a body of very many segments as a slow network cuts them', async () => {
  const segment = Buffer.alloc(536, 'x');
  const { bytes, refused } = await pushed({ 'content-length': '700000' }, segment, MAX_CHUNKS + 100);
  expect(bytes).toHaveLength(536 * (MAX_CHUNKS + 100));
  expect(refused).toBe(0);
});
