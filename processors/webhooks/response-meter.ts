import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { AttemptFailure } from './attempt-failure.ts';
import type { MeasuredSocket } from './measured-socket.ts';

/**
 * Limit of received bytes per response, heads and body together. undici limits the header fields of each head, but not
 * the reason phrase or the sum of interim responses and chunk extensions.
 */
const MAX_RESPONSE_BYTES = 65_536;

/** The same with TLS overhead and new session tickets. */
const MAX_TLS_BYTES = 2 * MAX_RESPONSE_BYTES;

const received = new WeakMap<Socket, number>();
const underTls = new WeakMap<Socket, MeasuredSocket>();

// A connection serves one request at a time (`pipelining: 1`), so each request's headers start a new count.
subscribe('undici:client:sendHeaders', (message) => {
  const { socket } = message as { socket: Socket };
  if (received.has(socket)) received.set(socket, 0);
  underTls.get(socket)?.allow(MAX_TLS_BYTES);
});

/**
 * Closes a connection whose response exceeds 64 KiB. The chunk that passes the limit is still parsed, so a response whose
 * head arrived with it counts.
 * @param socket without listeners so far: this listener must run before undici's
 * @param tcp the TCP connection under a TLS socket; null for plain HTTP
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
