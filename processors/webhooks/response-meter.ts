import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { readInParts } from '../../platform/socket-parts.ts';
import { AttemptFailure } from './attempt-failure.ts';
import type { MeasuredSocket } from './measured-socket.ts';

/** Limit of received bytes per response, heads and body together. */
export const MAX_RESPONSE_BYTES = 65_536;
/** The same with TLS overhead and new session tickets. */
const MAX_TLS_BYTES = 2 * MAX_RESPONSE_BYTES;
/** Limit of the lines of heads, interim ones included: undici takes 0.2 microseconds for each header field, and 64 KiB hold 16,000. */
const MAX_HEAD_LINES = 1_024;
/** Limit of received bytes that are no content after the final head: sizes and extensions of chunks, and trailers. */
const MAX_FRAMING_BYTES = 512;
/** Bytes that undici gets between two checks of the limits. */
const PART_BYTES = 512;
const LINE_FEED = 10;

interface Metered {
  bytes: number;
  headLines: number;
  /** Bytes up to the final head; null: it has not come yet. */
  headBytes: number | null;
  contentBytes: number;
}
const NOTHING: Metered = { bytes: 0, headLines: 0, headBytes: null, contentBytes: 0 };

const metered = new WeakMap<Socket, Metered>();
const meterOf = new WeakMap<object, Metered>();
const underTls = new WeakMap<Socket, MeasuredSocket>();

// A connection serves one request at a time (`pipelining: 1`), so each request's headers start a new count.
subscribe('undici:client:sendHeaders', (message) => {
  const { request, socket } = message as { request: object; socket: Socket };
  const meter = metered.get(socket);
  if (meter) {
    meterOf.set(request, meter);
    Object.assign(meter, NOTHING);
  }
  underTls.get(socket)?.allow(MAX_TLS_BYTES, socket);
});

subscribe('undici:request:headers', (message) => {
  const { request, response } = message as { request: object; response: { statusCode: number } };
  const meter = meterOf.get(request);
  if (meter && response.statusCode >= 200) meter.headBytes = meter.bytes;
});

subscribe('undici:request:bodyChunkReceived', (message) => {
  const { request, chunk } = message as { request: object; chunk: Buffer };
  const meter = meterOf.get(request);
  if (meter) meter.contentBytes += chunk.length;
});

/** Why a response is not read on; null: it may go on. */
const faultOf = ({ bytes, headLines, headBytes, contentBytes }: Metered): string | null => {
  if (bytes > MAX_RESPONSE_BYTES) return 'response over 64 KiB';
  if (headBytes === null) return headLines > MAX_HEAD_LINES ? 'more than 1,024 lines of heads' : null;
  const framing = bytes - headBytes - contentBytes;
  return framing > MAX_FRAMING_BYTES ? 'more than 512 bytes of chunk sizes and trailers' : null;
};

/**
 * Closes a connection whose response exceeds the limits. A response whose final head has come counts.
 * @param tcp the TCP connection under a TLS socket; null for plain HTTP
 */
export const meterResponses = (socket: Socket, tcp: MeasuredSocket | null): void => {
  const meter: Metered = { ...NOTHING };
  metered.set(socket, meter);
  if (tcp !== null) {
    underTls.set(socket, tcp);
    tcp.allow(MAX_TLS_BYTES, socket);
  }
  readInParts(socket, {
    bytes: PART_BYTES,
    mayRead: () => {
      const fault = faultOf(meter);
      if (fault !== null) socket.destroy(new AttemptFailure('connect', { cause: new Error(fault) }));
      return fault === null;
    },
    onPart: (part) => count(meter, part),
  });
};

const count = (meter: Metered, part: Buffer): void => {
  meter.bytes += part.length;
  if (meter.headBytes !== null) return;
  for (let at = part.indexOf(LINE_FEED); at !== -1; at = part.indexOf(LINE_FEED, at + 1))
    meter.headLines += 1;
};
