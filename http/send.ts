import type { IncomingMessage, ServerResponse } from 'node:http';
import { noteEarlyAnswer } from './raw-refusals.ts';
import { discardBody, hasBody } from './request-body.ts';
import type { Answer } from './route.ts';

/** Set once the server drains: connections end with the answer they wait for. */
export interface Draining {
  closing: boolean;
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
  draining: Draining,
): void {
  if (response.headersSent || response.destroyed) return;
  const headers: Record<string, string | number> = {};
  if (answer.body !== null) headers['content-type'] = 'application/json';
  if (noStore) headers['cache-control'] = 'no-store';
  for (const name in answer.headers) headers[name] = answer.headers[name] ?? '';
  headers['x-request-id'] = id;
  if (answer.body !== null) headers['content-length'] = Buffer.byteLength(answer.body);
  else if (answer.status !== 204 && answer.status !== 304) headers['content-length'] = 0;
  if (draining.closing) headers.connection = 'close';
  if (!raw.complete && hasBody(raw)) {
    noteEarlyAnswer(raw);
    discardBody(raw);
  }
  response.writeHead(answer.status, headers).end(answer.body ?? undefined);
}
