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

/** Event loop time of a usual response, milliseconds, several times over. */
export const USUAL_MS = 1;

interface Metered {
  bytes: number;
  /** When parsing of the latest chunk began; monotonic, milliseconds. */
  parsingSince: number;
  parsedMs: number;
  isTimed: boolean;
  readonly onLongResponse: (ms: number) => void;
}

const metered = new WeakMap<Socket, Metered>();
const underTls = new WeakMap<Socket, MeasuredSocket>();

// A connection serves one request at a time (`pipelining: 1`), so each request's headers start a new count.
subscribe('undici:client:sendHeaders', (message) => {
  const { socket } = message as { socket: Socket };
  const meter = metered.get(socket);
  if (meter) begin(socket, meter);
  underTls.get(socket)?.allow(MAX_TLS_BYTES, socket);
});

const begin = (socket: Socket, meter: Metered): void => {
  meter.bytes = 0;
  meter.parsedMs = 0;
  if (meter.isTimed) return;
  meter.isTimed = true;
  // After undici's listener, which parses, as `meterResponses` listens before it.
  socket.on('readable', () => {
    const before = Math.max(meter.parsedMs, USUAL_MS);
    meter.parsedMs += performance.now() - meter.parsingSince;
    if (meter.parsedMs > before) meter.onLongResponse(meter.parsedMs - before);
  });
};

/**
 * Closes a connection whose response exceeds 64 KiB. The chunk that passes the limit is still parsed, so a response whose
 * head arrived with it counts.
 * @param socket without listeners so far: this listener must run before undici's
 * @param tcp the TCP connection under a TLS socket; null for plain HTTP
 * @param onLongResponse called with the event loop time that parsing a response takes beyond a usual one, milliseconds: 9,000
 * trailers take 20
 */
export const meterResponses = (
  socket: Socket,
  tcp: MeasuredSocket | null,
  onLongResponse: (ms: number) => void,
): void => {
  const meter: Metered = { bytes: 0, parsingSince: 0, parsedMs: 0, isTimed: false, onLongResponse };
  metered.set(socket, meter);
  if (tcp !== null) {
    underTls.set(socket, tcp);
    tcp.allow(MAX_TLS_BYTES, socket);
  }
  socket.prependListener('readable', () => {
    const before = meter.bytes;
    meter.bytes += socket.readableLength;
    meter.parsingSince = performance.now();
    if (before > MAX_RESPONSE_BYTES) {
      socket.destroy(new AttemptFailure('connect', { cause: new Error('response over 64 KiB') }));
    }
  });
};
