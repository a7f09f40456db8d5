import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it, onTestFinished } from 'vitest';
import { aRoute, aServer, portOf } from './shell.ts';

it('an idle connection keeps nothing of its last request, whose head may have 16 KB', async () => {
  const app = aServer({ routes: [aRoute({ method: 'GET', path: '/healthz', access: 'public' })] });
  onTestFinished(() => app.close());
  await app.listen({ port: 0, host: '127.0.0.1' });
  let last: WeakRef<IncomingMessage> | undefined;
  app.server.on('request', (request) => {
    last = new WeakRef(request);
  });
  const socket = connect(portOf(app), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'data');
  await turn();
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  expect(last?.deref()).toBeUndefined();
  expect(socket.closed).toBe(false);
});
