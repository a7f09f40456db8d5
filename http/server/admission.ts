/**
 * The rules that every route shares, as `onRequest` hooks in the order of contract, Requests 3: 414, 401,
 * 429, 415; Fastify's body limit and the body parser follow with 413 and invalid_json. Hooks with a callback, because a
 * saved lookup should cost no promise that it does not need.
 */
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { Clock } from '../../platform/clock/clock.ts';
import { serveInSpan } from '../../platform/telemetry/spans.ts';
import { refuseByHeaders, soleHeader } from '../contract/request-body.ts';
import type { ApiKey, Caller, PublicRoute, Reply, Route } from '../contract/route.ts';
import type { ErrorCode } from '../errors/error-catalog.ts';
import { refuse } from './guards.ts';
import type { QuotaHeaders } from './replies.ts';
import { queryOf, type ServedRequest } from './served-request.ts';

/** Why a call is not admitted, and after how many seconds it may be. */
export interface Inadmissible {
  readonly code: ErrorCode;
  readonly retryAfter: number;
}

export interface AdmissionDeps {
  /** Returns whose key this is; null for a key that is unknown, expired or revoked. */
  authenticate(token: string): ApiKey | null | Promise<ApiKey | null>;
  /** Spends the rates that the call needs; null when all allow it. */
  admit(caller: Caller, route: Route): Inadmissible | null | Promise<Inadmissible | null>;
  /** Returns the values of the headers that tell what is left of these rates (contract, Requests 14). */
  quotaOf(caller: Caller, route: Route): QuotaHeaders;
}

interface Deps extends AdmissionDeps {
  readonly clock: Clock;
  /** Limits work in time. */
  readonly inTime: <T>(request: FastifyRequest, route: Route, work: Promise<T>) => Promise<T>;
}

/** Returns the hooks of a route. */
export function admissionHooks(route: Route, deps: Deps): onRequestHookHandler[] {
  const access =
    route.access === 'public'
      ? [admitPublicly(route, deps)]
      : [authenticate(route, deps), spendRates(route, deps)];
  const hasBody = route.method !== 'GET' && route.method !== 'OPTIONS';
  return [begin(route, deps), ...access, ...(hasBody ? [checkBodyHeaders(route)] : [])];
}

type Hook = (route: Route, deps: Deps) => onRequestHookHandler;

const begin: Hook = (route, deps) => (request, reply, done) => {
  const { raw } = request;
  request.receivedAt = deps.clock.now();
  request.startedAt = performance.now();
  request.query = queryOf(raw.url ?? '');
  serveInSpan(route.path, raw, reply.raw, request.id, () => checkTarget(route, request, reply, done));
};

function checkTarget(route: Route, request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  const { raw } = request;
  if (raw.headers.host === undefined && raw.httpVersion === '1.1') {
    // RFC 9112 section 3.2. The catalog has no code of its own for it; see raw-refusals.ts.
    refuse(request, reply, 'invalid_body', { message: 'The Host header is missing.' });
  } else if (exceedsTarget(route.targetLimit, raw.url)) refuse(request, reply, 'uri_too_long');
  else done();
}

const authenticate: Hook = (route, deps) => {
  const ready = inTimeOf<ApiKey | null>(route, deps);
  return (request, reply, done) => {
    const token = bearerToken(request.raw.rawHeaders, request.query as string);
    if (token === null) return refuse(request, reply, 'unauthorized');
    ready(request, deps.authenticate(token), done, (key) => {
      if (key === null) return refuse(request, reply, 'unauthorized');
      request.caller = key;
      request.isCounted = true;
      done();
    });
  };
};

const spendRates: Hook = (route, deps) => {
  const ready = inTimeOf<Inadmissible | null>(route, deps);
  return (request, reply, done) => {
    ready(request, deps.admit(request.caller as ApiKey, route), done, (refused) => {
      if (refused === null) done();
      else refuse(request, reply, refused.code, { retryAfter: refused.retryAfter });
    });
  };
};

function admitPublicly(route: PublicRoute, deps: Deps): onRequestHookHandler {
  const ready = inTimeOf<Reply | null>(route, deps);
  return (request, reply, done) => {
    request.isCounted = true;
    ready(request, route.admit?.(request as ServedRequest) ?? null, done, (refused) => {
      if (refused === null) done();
      else reply.send(refused);
    });
  };
}

const checkBodyHeaders =
  (route: Route): onRequestHookHandler =>
  (request, reply, done) => {
    const code = refuseByHeaders(route, request.raw);
    if (code !== null) return refuse(request, reply, code);
    // Fastify refuses malformed types; a route without a body has no use for the header.
    if (route.body === 'none') delete request.raw.headers['content-type'];
    done();
  };

/** Returns a function that passes a value on, at once or within the route's time. */
const inTimeOf =
  <T>(route: Route, { inTime }: Deps) =>
  (
    request: FastifyRequest,
    value: T | Promise<T>,
    done: (failure: Error) => void,
    next: (value: T) => void,
  ): void => {
    if (value instanceof Promise) inTime(request, route, value).then(next, done);
    else next(value);
  };

/** Returns whether the request target, path and query, is longer than its path allows (414). */
export function exceedsTarget(limit: number | undefined, target: string | undefined): boolean {
  return limit !== undefined && (target ?? '').length > limit;
}

/** Which key a request shows (contract, Requests 1; RFC 6750 section 2.1). One space: RFC 9110 section 11.4 lets a recipient refuse more, and contract, Requests 1 does. */
const BEARER = /^bearer ([\w\-.~+/]+=*)$/i;

/** Longer than any key. Longer text is not searched for in the URL, which takes quadratic time. */
const MAX_TOKEN_LENGTH = 64;

/**
 * The token of the one Authorization header, or null where the answer is 401: no header or several,
 * another scheme, not exactly one space, no key by its length, or a key that also stands in the URL, where logs would
 * keep it.
 */
export function bearerToken(rawHeaders: readonly string[], query: string): string | null {
  const value = soleHeader(rawHeaders, 'authorization');
  const token = value ? BEARER.exec(value)?.[1] : undefined;
  if (token === undefined || token.length > MAX_TOKEN_LENGTH || query.includes(token)) return null;
  return token;
}
