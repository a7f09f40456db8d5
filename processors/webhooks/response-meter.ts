import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { AttemptFailure } from './attempt-failure.ts';

/**
 * Bytes of one response, heads and body together, that a connection may bring. undici bounds the header fields of each
 * head, but neither the reason phrase of a status line nor what interim answers and chunk extensions add up to.
 */
const MAX_RESPONSE_BYTES = 65_536;

const received = new WeakMap<Socket, number>();

// A connection serves one request at a time (`pipelining: 1`), so a new request's headers begin a new count.
subscribe('undici:client:sendHeaders', (message) => {
  const { socket } = message as { socket: Socket };
  if (received.has(socket)) received.set(socket, 0);
});

/**
 * Closes the connection when one response has brought more than 64 KiB and goes on. The chunk that passes the limit is
 * still parsed, so that a head with a long body behind it counts.
 * @param socket not yet read by anyone: this listener has to run before undici's
 */
export const meterResponses = (socket: Socket): void => {
  received.set(socket, 0);
  socket.prependListener('readable', () => {
    const before = received.get(socket) ?? 0;
    received.set(socket, before + socket.readableLength);
    if (before > MAX_RESPONSE_BYTES) {
      socket.destroy(new AttemptFailure('connect', { cause: new Error('response over 64 KiB') }));
    }
  });
};
