import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { AttemptFailure } from './attempt-failure.ts';
import type { MeasuredSocket } from './measured-socket.ts';

/**
 * Bytes of one response, heads and body together, that a connection may bring. undici bounds the header fields of each
 * head, but neither the reason phrase of a status line nor what interim answers and chunk extensions add up to.
 */
const MAX_RESPONSE_BYTES = 65_536;

/** The same as TLS sends it, with the tickets of a new session before it. */
const MAX_TLS_BYTES = 2 * MAX_RESPONSE_BYTES;

const received = new WeakMap<Socket, number>();
const underTls = new WeakMap<Socket, MeasuredSocket>();

// A connection serves one request at a time (`pipelining: 1`), so a new request's headers begin a new count.
subscribe('undici:client:sendHeaders', (message) => {
  const { socket } = message as { socket: Socket };
  if (received.has(socket)) received.set(socket, 0);
  underTls.get(socket)?.allow(MAX_TLS_BYTES);
});

/**
 * Closes the connection when one response has brought more than 64 KiB and goes on. The chunk that passes the limit is
 * still parsed, so that a head with a long body behind it counts.
 * @param socket not yet read by anyone: this listener has to run before undici's
 * @param tcp what is under a TLS socket; null: the socket is TCP's own
 */
export const meterResponses = (socket: Socket, tcp: MeasuredSocket | null): void => {
  received.set(socket, 0);
  if (tcp !== null) {
    underTls.set(socket, tcp);
    tcp.allow(MAX_TLS_BYTES);
  }
  socket.prependListener('readable', () => {
    const before = received.get(socket) ?? 0;
    received.set(socket, before + socket.readableLength);
    if (before > MAX_RESPONSE_BYTES) {
      socket.destroy(new AttemptFailure('connect', { cause: new Error('response over 64 KiB') }));
    }
  });
};
