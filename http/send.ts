import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { noteEarlyAnswer } from './raw-refusals.ts';
import { discardBody, hasBody } from './request-body.ts';
import type { Answer } from './route.ts';

/** What holds for every answer of a server. */
export interface Sending {
  /** Set once the server drains: connections end with the answer they wait for. */
  closing: boolean;
  /** On every answer. */
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds in which a caller has to take an answer, before the connection is cut. */
  readonly writeMs: number;
}

/**
 * Writes an answer to the socket. It goes past Fastify's reply, whose serialisation these answers do not
 * need, and writes each header once.
 * @param noStore whether `cache-control` is `no-store` unless the answer says otherwise
 */
export function send(
  raw: IncomingMessage,
  response: ServerResponse,
  id: string,
  answer: Answer,
  noStore: boolean,
  sending: Sending,
): void {
  if (response.headersSent || response.destroyed) return;
  const headers: Record<string, string | number> = { ...sending.headers };
  if (answer.body !== null) headers['content-type'] = 'application/json';
  if (noStore) headers['cache-control'] = 'no-store';
  for (const name in answer.headers) headers[name] = answer.headers[name] ?? '';
  headers['x-request-id'] = id;
  if (answer.body !== null) headers['content-length'] = Buffer.byteLength(answer.body);
  else if (answer.status !== 204 && answer.status !== 304) headers['content-length'] = 0;
  if (sending.closing) headers.connection = 'close';
  if (!raw.complete && hasBody(raw)) {
    noteEarlyAnswer(raw);
    discardBody(raw);
  }
  response.writeHead(answer.status, headers).end(answer.body ?? undefined);
  // Without a socket it waits behind the answer to an earlier request on the connection.
  if (response.socket === null || raw.socket.writableLength > 0)
    cutUnlessTaken(raw.socket, response, sending.writeMs);
}

/** A caller that does not read, or reads a byte now and then, would hold the answer in memory for ever. */
function cutUnlessTaken(socket: Socket, response: ServerResponse, writeMs: number): void {
  const timer = setTimeout(() => socket.destroy(), writeMs);
  const taken = () => clearTimeout(timer);
  response.once('finish', taken);
  response.once('close', taken);
}
