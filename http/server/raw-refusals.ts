/**
 * Answers to bytes that are no HTTP, and to heads that are too long or never end. Fastify gives `clientErrorHandler`
 * nothing but the socket, and Node its `connect` listener: no reply exists, so the bytes are written here.
 */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type ErrorCode, refusal } from '../errors/error-catalog.ts';

/** A request line this long is why the head overflowed (the parser's limit is 16 KiB for all of it). */
const LONG_REQUEST_LINE = 8_192;

/** Headers of every answer. */
type Headers = Readonly<Record<string, string>>;

interface ParserError extends Error {
  readonly code?: string;
  /** A Buffer in Node, whatever Fastify's types say. */
  readonly rawPacket?: unknown;
}

/** The listener for `clientError`: an Error body with a request id, then the end of the connection. */
export const refuseRaw =
  (headers: Headers) =>
  (error: ParserError, socket: Socket): void => {
    if (error.code === 'ECONNRESET' || !socket.writable || answeredEarly.has(socket)) {
      socket.destroy();
      return;
    }
    const { status, code, message } = diagnose(error);
    endWith(socket, headers, status, code, message);
  };

/** The listener for `connect`: this is no proxy, and no path has that form. */
export const refuseConnect =
  (headers: Headers) =>
  (_request: unknown, socket: Socket): void => {
    // Node has removed its own listener, and an error without any ends the process.
    socket.on('error', () => socket.destroy());
    if (socket.writable) endWith(socket, headers, 404, 'not_found');
    else socket.destroy();
  };

/** Sockets with an answer out while the body is still coming: a second answer would be taken for another request's. */
const answeredEarly = new WeakSet<object>();

/** Notes that a request was answered before its body ended, until it has. */
export function noteEarlyAnswer(request: IncomingMessage): void {
  const { socket } = request;
  answeredEarly.add(socket);
  request.once('end', () => answeredEarly.delete(socket));
}

/** The catalog has no code for a broken message; `invalid_body` ("wrong shape") comes closest and keeps it closed. */
function diagnose(error: ParserError): { status: number; code: ErrorCode; message?: string } {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, code: 'invalid_body', message: 'The request did not arrive in time.' };
    case 'HPE_HEADER_OVERFLOW':
      return overlongLine(error.rawPacket)
        ? { status: 414, code: 'uri_too_long' }
        : { status: 431, code: 'invalid_body', message: 'The request headers are too long or too many.' };
    default:
      return { status: 400, code: 'invalid_body', message: 'The request is not well-formed HTTP.' };
  }
}

function overlongLine(packet: unknown): boolean {
  return Buffer.isBuffer(packet) && !packet.subarray(0, LONG_REQUEST_LINE).includes('\r\n');
}

function endWith(socket: Socket, headers: Headers, status: number, code: ErrorCode, message?: string): void {
  const always = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const id = randomUUID();
  const { body } = refusal({ id }, code, message === undefined ? {} : { message });
  const text = String(body);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n` +
      `${always.join('')}X-Request-ID: ${id}\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
    () => socket.destroy(),
  );
}
