import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { expect, it } from 'vitest';
import { keepOrder, MeasuredSocket } from '../../processors/webhooks/measured-socket.ts';
import { createTlsPaces } from '../../processors/webhooks/tls-pace.ts';
import { startRawReceiver } from '../support/receiver.ts';
import { authority, outcome, post, receiver, senderTo, undoing } from '../support/sending.ts';

/** Passes bytes between a client and the receiver behind it; `answered` after each answer that the client got. */
const relayTo = async (port: number, answered: (client: Socket) => void) => {
  const relay = await startRawReceiver((client) => {
    const behind = connect(port, '127.0.0.1');
    behind.on('error', () => undefined).on('data', (bytes) => client.write(bytes, () => answered(client)));
    client.on('data', (bytes) => behind.write(bytes)).on('close', () => behind.destroy());
  });
  undoing.push(relay.close);
  return relay;
};

it('survives a reset right behind the receiver part of the handshake', async () => {
  const behind = await receiver();
  const relay = await relayTo(behind.port, (client) => client.resetAndDestroy());
  const sender = senderTo(relay);
  for (const _ of [1, 2, 3]) expect(await post(sender, relay)).toEqual(outcome(null, 'connect'));
});

it('reports a reset as an error that concerns no other request', async () => {
  const target = await startRawReceiver((socket) => socket.once('data', () => socket.resetAndDestroy()));
  undoing.push(target.close);
  const below = new MeasuredSocket({ host: '127.0.0.1', port: target.port }, createTlsPaces()('a partner'));
  below.resume().write('a request');
  await expect(once(below, 'end')).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' });
});

it('ends TLS with its error and then its close, in a later turn, although the connection below has closed before', async () => {
  const { port } = await receiver();
  const below = new MeasuredSocket({ host: '127.0.0.1', port }, createTlsPaces()('a partner'));
  const tls = connectTls({ socket: below, host: '127.0.0.1', ca: authority.cert });
  await once(tls, 'secureConnect');
  keepOrder(tls);
  const events: string[] = [];
  for (const name of ['error', 'close']) tls.on(name, () => events.push(name));
  below.destroy();
  await once(below, 'close');
  tls.destroy(new Error('a fault of the answer'));
  expect(events).toEqual([]);
  await expect.poll(() => events).toContain('close');
  expect(events).toEqual(['error', 'close']);
});
