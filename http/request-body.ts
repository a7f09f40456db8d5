/** From the bytes of a request to the parsed body, with a limit, or to the code that refuses them. */
import type { IncomingMessage } from 'node:http';
import { soleHeader } from './authorization.ts';
import type { ErrorCode } from './error-catalog.ts';
import type { Route } from './route.ts';

/** So much of a refused body is let pass unread before the connection is cut: fewer resets on honest callers. */
const DISCARDED_BYTES = 262_144;

const JSON_MEDIA_TYPE = /^application\/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i;
const FORM_MEDIA_TYPE = /^application\/x-www-form-urlencoded[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i;
const TEXT_MEDIA_TYPE = /^(application\/json|text\/plain)[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Whether the message is framed to have a body; it may still turn out to be empty. */
export function hasBody(raw: IncomingMessage): boolean {
  const length = raw.headers['content-length'];
  return (length !== undefined && length !== '0') || raw.headers['transfer-encoding'] !== undefined;
}

/** What the headers alone tell against the body, in the order of contract, Requests 3: 415, 415, 413. */
export function refuseByHeaders(route: Route, raw: IncomingMessage): ErrorCode | null {
  if (raw.headers['content-encoding'] !== undefined) return 'unsupported_encoding';
  if (!acceptableMediaType(route, raw)) return 'unsupported_media_type';
  return Number(raw.headers['content-length'] ?? 0) > route.bodyLimit ? 'body_too_large' : null;
}

function acceptableMediaType(route: Route, raw: IncomingMessage): boolean {
  // Any body is refused later, whatever its type; clients set the header out of habit without one.
  if (route.body === 'none') return true;
  const type = soleHeader(raw.rawHeaders, 'content-type');
  if (type === undefined) {
    // A chunked body may prove empty, which needs no type: `parseBody` decides.
    return route.body === 'optional' && Number(raw.headers['content-length'] ?? 0) === 0;
  }
  return type !== null && mediaTypeOf(route.body).test(type);
}

const mediaTypeOf = (body: Route['body']): RegExp =>
  body === 'form' ? FORM_MEDIA_TYPE : body === 'text' ? TEXT_MEDIA_TYPE : JSON_MEDIA_TYPE;

/** The body that the route may see, or why not. `typed`: the request had a Content-Type. */
export function parseBody(
  policy: Route['body'],
  bytes: Buffer,
  typed: boolean,
): { readonly value: unknown } | { readonly refused: ErrorCode } {
  if (policy === 'none') return bytes.length === 0 ? { value: undefined } : { refused: 'invalid_body' };
  if (policy === 'optional' && !typed) {
    return bytes.length === 0 ? { value: undefined } : { refused: 'unsupported_media_type' };
  }
  if (policy === 'form') return { value: new URLSearchParams(bytes.toString('utf8')) };
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    return { refused: 'invalid_json' };
  }
  return policy === 'optional' && !isEmptyObject(value) ? { refused: 'invalid_body' } : { value };
}

function isEmptyObject(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
  );
}

/** Collects the body. `done` is called once: with the bytes, or as soon as they are too many, or the caller is gone. */
export function readBody(
  raw: IncomingMessage,
  limit: number,
  done: (body: Buffer | 'too_large' | 'gone') => void,
): void {
  const chunks: Buffer[] = [];
  let length = 0;
  const finish = (body: Buffer | 'too_large' | 'gone') => {
    raw.off('data', onData).off('end', onEnd).off('close', onGone);
    done(body);
  };
  const onData = (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length > limit) finish('too_large');
  };
  const onEnd = () => finish(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, length));
  const onGone = () => finish('gone');
  raw.on('data', onData).on('end', onEnd).on('close', onGone).on('error', ignore);
}

/** A reset connection also emits `close`, which is what ends the reading. */
const ignore = () => {};

/** Lets the rest of a body that nobody will read pass by, and cuts the connection when it does not end soon. */
export function discardBody(raw: IncomingMessage): void {
  let left = DISCARDED_BYTES;
  raw.on('error', ignore).on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) raw.destroy();
  });
}
