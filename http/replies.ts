/** Hooks that turn an `Answer` into the reply: a route's count, then status and headers, then the payload. */

import type { IncomingMessage } from 'node:http';
import type {
  FastifyReply,
  onSendHookHandler,
  preSerializationAsyncHookHandler,
  preSerializationHookHandler,
} from 'fastify';
import { chargeAnswer } from './on-behalf-of.ts';
import { noteEarlyAnswer } from './raw-refusals.ts';
import { discardBody, hasBody } from './request-body.ts';
import type { RequestsUnderWay } from './requests-under-way.ts';
import type { Answer, ApiKey } from './route.ts';
import type { ServedRequest } from './served-request.ts';
import type { UntakenAnswers } from './untaken-answers.ts';

/** What holds for every reply of a server. */
export interface Replies {
  /** Set once the server drains: connections end with the reply they wait for. */
  closing: boolean;
  /** On every reply. */
  readonly headers: Readonly<Record<string, string>>;
  readonly untaken: UntakenAnswers;
  /** Returns the network of a request's caller; empty: callers share it. */
  readonly ownerOf: (request: IncomingMessage) => string;
}

/** Values of the headers `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers). */
export interface QuotaHeaders {
  readonly policy: string;
  readonly limit: string;
}

/** Lets a route's `answered` see the answer once, and replace it. Does not throw: Fastify would send twice. */
export const countAnswer =
  (
    answered: (request: ServedRequest, answer: Answer) => Answer | Promise<Answer>,
    failed: (request: { readonly id: string }, failure: unknown) => Answer,
  ): preSerializationAsyncHookHandler =>
  async (request, _reply, payload) => {
    const answer = payload as Answer;
    if (!request.isCounted) return answer;
    request.isCounted = false;
    try {
      return await answered(request as ServedRequest, answer);
    } catch (failure) {
      return failed(request, failure);
    }
  };

/**
 * Sets status and headers; `noStore`: `cache-control` is `no-store` unless the answer says otherwise. `quotaOf`: for
 * answers to a call with a key.
 */
export const setHead =
  (
    replies: Replies,
    noStore: boolean,
    quotaOf?: (key: ApiKey) => QuotaHeaders,
  ): preSerializationHookHandler =>
  ({ caller }, reply, answer, done) => {
    writeHead(reply, replies, noStore, answer as Answer);
    if (quotaOf && caller !== null) setQuota(reply, quotaOf(caller));
    done();
  };

/** One by one: `headers` with an object takes twice the time. */
export function setQuota(reply: FastifyReply, { policy, limit }: QuotaHeaders): void {
  reply.header('ratelimit-policy', policy).header('ratelimit', limit);
}

export function writeHead(reply: FastifyReply, replies: Replies, noStore: boolean, answer: Answer): void {
  const { status, body, headers } = answer;
  reply.code(status).headers(replies.headers);
  // In place of Fastify's own, which has a charset.
  if (body !== null) reply.header('content-type', 'application/json');
  else reply.removeHeader('content-type');
  if (noStore) reply.header('cache-control', 'no-store');
  if (headers !== undefined) reply.headers(headers);
  reply.header('x-request-id', reply.request.id);
  if (replies.closing) reply.header('connection', 'close');
}

/** Sends the payload, with what Fastify does not do: unread bodies are drained, slow readers cut. */
export const transmit =
  (
    { untaken, ownerOf }: Replies,
    underWay: Pick<RequestsUnderWay, 'leave'>,
    sent?: (status: number, milliseconds: number) => void,
  ): onSendHookHandler =>
  ({ raw, startedAt, caller }, reply, payload, done) => {
    underWay.leave(raw);
    const bytes = (payload as string | Buffer | null)?.length ?? 0;
    if (caller) chargeAnswer(caller.partner_id, bytes);
    if (!raw.complete && hasBody(raw)) {
      noteEarlyAnswer(raw);
      discardBody(raw);
    }
    done();
    const response = reply.raw;
    // Without a socket it waits behind the answer to an earlier request on the connection.
    const isWaiting = response.socket === null || raw.socket.writableLength > 0;
    if (isWaiting && !response.destroyed) untaken.add(raw.socket, response, bytes, ownerOf(raw));
    if (startedAt !== 0) sent?.(reply.statusCode, performance.now() - startedAt);
  };
