/** Hooks that turn an `Reply` into the reply: a route's count, then status and headers, then the payload. */
import type { FastifyReply, onSendHookHandler, preSerializationHookHandler } from 'fastify';
import { discardBody, hasBody } from '../contract/request-body.ts';
import type { ApiKey, Reply } from '../contract/route.ts';
import { limitWriting } from './connections.ts';
import { noteEarlyAnswer } from './raw-refusals.ts';
import type { ServedRequest } from './served-request.ts';

/** What holds for every reply of a server. */
export interface ReplyDefaults {
  /** Set once the server drains: connections end with the reply they wait for. */
  closing: boolean;
  /** On every reply. */
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds in which a caller must take an answer. */
  readonly writeMs: number;
}

/** Values of the headers `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers). */
export interface QuotaHeaders {
  readonly policy: string;
  readonly limit: string;
}

/** Lets a route's `beforeSend` see the answer once, and replace it. Does not fail: Fastify would send twice. */
export const runBeforeSend =
  (
    beforeSend: (request: ServedRequest, answer: Reply) => Reply | Promise<Reply>,
    failed: (request: { readonly id: string }, failure: unknown) => Reply,
  ): preSerializationHookHandler =>
  (request, _reply, payload, done) => {
    if (!request.isCounted) return done(null, payload);
    request.isCounted = false;
    try {
      const answer = beforeSend(request as ServedRequest, payload as Reply);
      if (!(answer instanceof Promise)) return done(null, answer);
      answer.catch((failure: unknown) => failed(request, failure)).then((counted) => done(null, counted));
    } catch (failure) {
      done(null, failed(request, failure));
    }
  };

/**
 * Sets status and headers; `noStore`: `cache-control` is `no-store` unless the answer says otherwise. `quotaOf`: for
 * answers to a call with a key.
 */
export const setHead =
  (
    replies: ReplyDefaults,
    noStore: boolean,
    quotaOf?: (key: ApiKey) => QuotaHeaders,
  ): preSerializationHookHandler =>
  ({ caller }, reply, answer, done) => {
    writeHead(reply, replies, noStore, answer as Reply);
    if (quotaOf && caller !== null) setQuota(reply, quotaOf(caller));
    done();
  };

/** One by one: `headers` with an object takes twice the time. */
export function setQuota(reply: FastifyReply, { policy, limit }: QuotaHeaders): void {
  reply.header('ratelimit-policy', policy).header('ratelimit', limit);
}

export function writeHead(
  reply: FastifyReply,
  replies: ReplyDefaults,
  noStore: boolean,
  answer: Reply,
): void {
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
  ({ writeMs }: ReplyDefaults, sent?: (status: number, milliseconds: number) => void): onSendHookHandler =>
  ({ raw, startedAt }, reply, payload, done) => {
    if (!raw.complete && hasBody(raw)) {
      noteEarlyAnswer(raw);
      discardBody(raw);
    }
    done();
    limitWriting(raw.socket, reply.raw, (payload as string | Buffer | null)?.length ?? 0, writeMs);
    if (startedAt !== 0) sent?.(reply.statusCode, performance.now() - startedAt);
  };
