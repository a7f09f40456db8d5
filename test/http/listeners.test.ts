import { once } from 'node:events';
import { connect } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Listeners, listenOnSeveral } from '../../http/listeners.ts';
import { mostBetweenTurns } from '../support/between-turns.ts';
import { until } from '../support/until.ts';
import { aServer, exchangeBytes, portOf } from './shell.ts';

const HOST = '127.0.0.1';
const CONNECTIONS = 64;

let app: FastifyInstance;
let listeners: Listeners;
beforeEach(async () => {
  app = aServer();
  listeners = await listenOnSeveral(app, HOST, 0);
});
afterEach(() => Promise.all([listeners.close(), app.close()]));

const connected = async () => {
  const sockets = Array.from({ length: CONNECTIONS }, () => connect(portOf(app), HOST));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  return sockets;
};

it('accepts more than one connection in a turn, and answers on each', async () => {
  let accepted = 0;
  app.server.on('connection', () => {
    accepted += 1;
  });
  const most = mostBetweenTurns(() => accepted);
  const sockets = await connected();
  await until('all are accepted', async () => accepted === CONNECTIONS);
  expect(most()).toBeGreaterThan(1);
  const answers = sockets.map((socket) => once(socket, 'data'));
  for (const socket of sockets) socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  for (const [answer] of await Promise.all(answers)) expect(String(answer)).toMatch(/^HTTP\/1.1 200 /);
  for (const socket of sockets) socket.destroy();
});

it('finds the port taken where another process of the same program listens', async () => {
  const other = aServer();
  await expect(listenOnSeveral(other, HOST, portOf(app))).rejects.toMatchObject({ code: 'EADDRINUSE' });
  await other.close();
});

it('accepts nothing more once it is closed, and ends idle connections', async () => {
  const port = portOf(app);
  const sockets = await connected();
  const answers = sockets.map((socket) => once(socket, 'data'));
  const ended = sockets.map((socket) => once(socket, 'close'));
  for (const socket of sockets) socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await Promise.all(answers);
  await Promise.all([listeners.close(), app.close()]);
  await Promise.all(ended);
  await expect(once(connect(port, HOST), 'connect')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  app = aServer();
  listeners = await listenOnSeveral(app, HOST, 0);
  expect(await exchangeBytes(app, 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
    / 200 /,
  );
});
