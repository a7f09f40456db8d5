/** Rules for request bodies, checked before Fastify reads the body and when it has been read. */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, preValidationHookHandler } from 'fastify';
import { type ErrorCode, refusal } from '../errors/error-catalog.ts';
import type { Route } from './route.ts';

/** Bytes of a refused body that are read and dropped before the connection is cut: fewer resets on honest callers. */
const DISCARDED_BYTES = 262_144;

const JSON_MEDIA_TYPE = /^application\/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i;
const FORM_MEDIA_TYPE = /^application\/x-www-form-urlencoded[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i;
const TEXT_MEDIA_TYPE = /^(application\/json|text\/plain)[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What the parser makes of a body that its route does not accept; `refuseBody` answers it. */
class RefusedBody {
  readonly code: ErrorCode;

  constructor(code: ErrorCode) {
    this.code = code;
  }
}

/**
 * Parses every body by its route's policy. One parser for all content types: `refuseByHeaders` checks the type first,
 * because Fastify's own check ignores charsets and repeated headers. The parser does not fail: that would close the
 * connection, although the body has been read.
 */
export function addBodyParser(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request, bytes, done) => {
    const policy = request.routeOptions.config.route?.body ?? 'none';
    done(null, parseBody(policy, bytes as Buffer, request.headers['content-type'] !== undefined));
  });
}

/** Refuses a body that the parser did not accept; a `preValidation` hook. */
export const refuseBody: preValidationHookHandler = (request, reply, done) => {
  const { body } = request;
  if (!(body instanceof RefusedBody)) return done();
  request.body = undefined;
  reply.send(refusal(request, body.code));
};

/** Whether the message is framed to have a body; it may still turn out to be empty. */
export function hasBody(raw: IncomingMessage): boolean {
  const length = raw.headers['content-length'];
  return (length !== undefined && length !== '0') || raw.headers['transfer-encoding'] !== undefined;
}

/**
 * Returns the code that refuses a body by its headers, in the order of contract, Requests 3: 415, 415, 413. A body
 * without a length is left to Fastify's `bodyLimit`.
 */
export function refuseByHeaders({ body, bodyLimit }: Route, raw: IncomingMessage): ErrorCode | null {
  if (raw.headers['content-encoding'] !== undefined) return 'unsupported_encoding';
  if (!acceptableMediaType(body, raw)) return 'unsupported_media_type';
  return Number(raw.headers['content-length'] ?? 0) > bodyLimit ? 'body_too_large' : null;
}

function acceptableMediaType(policy: Route['body'], raw: IncomingMessage): boolean {
  // Any body is refused later, whatever its type; clients set the header out of habit without one.
  if (policy === 'none') return true;
  const type = soleHeader(raw.rawHeaders, 'content-type');
  if (type === undefined) {
    // A chunked body may prove empty, which needs no type: `parseBody` decides.
    return policy === 'optional' && Number(raw.headers['content-length'] ?? 0) === 0;
  }
  return type !== null && mediaTypeOf(policy).test(type);
}

const mediaTypeOf = (body: Route['body']): RegExp =>
  body === 'form' ? FORM_MEDIA_TYPE : body === 'text' ? TEXT_MEDIA_TYPE : JSON_MEDIA_TYPE;

/** Returns the body that the route sees. `typed`: the request had a Content-Type. */
function parseBody(policy: Route['body'], bytes: Buffer, typed: boolean): unknown {
  const untyped = policy === 'none' || (policy === 'optional' && !typed);
  if (untyped && bytes.length === 0) return undefined;
  if (untyped) return new RefusedBody(policy === 'none' ? 'invalid_body' : 'unsupported_media_type');
  if (policy === 'form') return new URLSearchParams(bytes.toString('utf8'));
  try {
    // Strict about UTF-8 and byte order marks, which Fastify's own parser is not.
    const value: unknown = JSON.parse(utf8.decode(bytes));
    return policy === 'optional' && !isEmptyObject(value) ? new RefusedBody('invalid_body') : value;
  } catch {
    return new RefusedBody('invalid_json');
  }
}

function isEmptyObject(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
  );
}

/** Reads and drops the rest of a refused body, and cuts the connection when it does not end soon. */
export function discardBody(raw: IncomingMessage): void {
  let left = DISCARDED_BYTES;
  // A reset connection needs no handling here.
  raw.on('error', () => {});
  raw.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) raw.destroy();
  });
}

/**
 * The value of a header sent exactly once; undefined without one, null for several. Node keeps the first
 * of several Authorization or Content-Type headers and drops the others silently, hence the raw list.
 */
export function soleHeader(rawHeaders: readonly string[], name: string): string | null | undefined {
  let value: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const found = rawHeaders[at];
    if (found === undefined || found.length !== name.length || found.toLowerCase() !== name) continue;
    if (value !== undefined) return null;
    value = rawHeaders[at + 1];
  }
  return value;
}
