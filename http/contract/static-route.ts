import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { ApiRequest, PublicRoute, Reply } from './route.ts';

/** A text that is the same for every caller. */
export interface StaticContent {
  readonly body: string | Buffer;
  /** Names in lower case, `content-type` among them. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A public GET of a constant text. `content` as a function: read when it is first asked for. */
export function staticRoute(
  path: string,
  maxAgeSeconds: number,
  content: StaticContent | (() => StaticContent),
): PublicRoute {
  let answer: ((request: ApiRequest) => Reply) | undefined;
  return {
    method: 'GET',
    path,
    access: 'public',
    body: 'none',
    bodyLimit: 0,
    handle: (request) => {
      answer ??= staticAnswers(typeof content === 'function' ? content() : content, maxAgeSeconds);
      return answer(request);
    },
  };
}

/** What a constant text is answered with: ETag (RFC 9110 section 8.8.3), 304, and gzip for who takes it. */
export function staticAnswers(content: StaticContent, maxAgeSeconds: number): (request: ApiRequest) => Reply {
  const plain = variant(content, maxAgeSeconds, '');
  let compressed: Reply | null = null;
  return (request) => {
    if (!takesGzip(request)) return unlessKnown(request, plain);
    compressed ??= variant(zipped(content), maxAgeSeconds, '-gzip');
    return unlessKnown(request, compressed);
  };
}

function zipped({ body, headers }: StaticContent): StaticContent {
  return { body: gzipSync(body), headers: { ...headers, 'content-encoding': 'gzip' } };
}

function variant({ body, headers }: StaticContent, maxAgeSeconds: number, suffix: string): Reply {
  const digest = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return {
    status: 200,
    // Bytes, which all answers share: a text would be encoded into a copy for each.
    body: Buffer.from(body),
    headers: {
      ...headers,
      etag: `"${digest}${suffix}"`,
      vary: 'accept-encoding',
      'cache-control': `public, max-age=${maxAgeSeconds}`,
    },
  };
}

function takesGzip(request: ApiRequest): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(request.header('accept-encoding') ?? '');
}

function unlessKnown(request: ApiRequest, answer: Reply): Reply {
  const known = request.header('if-none-match');
  const etag = answer.headers?.etag;
  if (known === undefined || etag === undefined || !matches(known, String(etag))) return answer;
  const { 'content-type': _type, 'content-encoding': _encoding, ...kept } = answer.headers ?? {};
  return { status: 304, body: null, headers: kept };
}

/** Weak comparison, which If-None-Match asks for (RFC 9110 section 13.1.2): no tag holds the quotes of another. */
function matches(known: string, etag: string): boolean {
  return known.trim() === '*' || known.includes(etag);
}
