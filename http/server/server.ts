/** The HTTP server: Fastify with this service's limits, hooks and refusals. */
import { METHODS } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../platform/clock/clock.ts';
import { addBodyParser, refuseBody } from '../contract/request-body.ts';
import type { KeyRequest, PublicRoute, Reply, Route, RouteTable } from '../contract/route.ts';
import { createErrorHandler, createFailed, type Log, timeLimit } from '../errors/request-errors.ts';
import { type AdmissionDeps, admissionHooks, exceedsTarget } from './admission.ts';
import { watchConnections } from './connections.ts';
import { createFastify, defaultTimeouts, type RequestTimeouts } from './fastify.ts';
import { type GuardDeps, guard, refuse } from './guards.ts';
import { type ReplyDefaults, runBeforeSend, setHead, transmit } from './replies.ts';
import { decorateRequests, type ServedRequest } from './served-request.ts';

export interface ServerDeps extends AdmissionDeps {
  readonly routes: RouteTable;
  readonly clock: Clock;
  readonly log: Log;
  readonly guard: GuardDeps;
  readonly requestTimeouts?: Partial<RequestTimeouts>;
  /** Whether callers reach the service by https alone. */
  readonly isHttps?: boolean;
  /** Open connections of this process; further ones are closed at once. */
  readonly maxConnections: number;
  /** Called with the status of every answer of a route, for metrics. */
  readonly onAnswer?: (route: Route, status: number, milliseconds: number) => void;
}

/** A server for these routes, not yet listening: `listen` serves, `inject` tests, `close` drains. */
export function buildServer(deps: ServerDeps): FastifyInstance {
  const timeouts = { ...defaultTimeouts, ...deps.requestTimeouts };
  const headers = { ...NO_SNIFFING, ...(deps.isHttps ? STRICT_TRANSPORT : {}) };
  const replies: ReplyDefaults = { closing: false, headers, writeMs: timeouts.writeMs };
  const app = createFastify(timeouts, replies, deps.maxConnections, (url) =>
    showRefusalBelow(deps.routes, url),
  );
  const cutSilent = watchConnections(app.server);
  app.addHook('preClose', (done) => {
    replies.closing = true;
    cutSilent();
    done();
  });
  const failed = createFailed(deps.log);
  const inTime = timeLimit(timeouts.handlerMs, failed);
  decorateRequests(app);
  addBodyParser(app);
  app.setErrorHandler(createErrorHandler(failed));
  app.setReplySerializer((answer) => (answer as Reply).body as string);
  const shared = { app, deps, replies, failed, inTime };
  addMethods(app);
  for (const [path, onPath] of Map.groupBy(deps.routes, (route) => route.path)) {
    for (const route of onPath) addRoute(shared, route);
    refuseOtherMethods(shared, path, onPath);
  }
  // A route instead of `setNotFoundHandler`: that one comes after the body, and `OPTIONS *` does not reach it.
  addRefusal(shared, '*', ROUTED_METHODS, (request, reply) =>
    isBrowserAtRoot(request) ? reply.redirect('/dashboard', 303) : refuse(request, reply, 'not_found'),
  );
  return app;
}

type ShowRefusal = PublicRoute['showRefusal'];

const showRefusalOf = (route: Route | undefined): ShowRefusal =>
  route?.access === 'public' ? route.showRefusal : undefined;

/** How the route of all other paths below shows a refusal. */
const showRefusalBelow = (routes: RouteTable, url: string): ShowRefusal =>
  showRefusalOf(routes.find(({ path }) => path.endsWith('/*') && url.startsWith(path.slice(0, -1))));

/** A person who opens the service's address is led to the dashboard; for a program it is an unknown path. */
const isBrowserAtRoot = ({ method, url, headers }: FastifyRequest): boolean =>
  method === 'GET' && url === '/' && (headers.accept ?? '').includes('text/html');

/** What every route of a server shares. */
interface Shared {
  readonly app: FastifyInstance;
  readonly deps: ServerDeps;
  readonly replies: ReplyDefaults;
  readonly failed: ReturnType<typeof createFailed>;
  readonly inTime: ReturnType<typeof timeLimit>;
}

function addRoute(shared: Shared, route: Route): void {
  const { app, deps, replies, failed, inTime } = shared;
  const { path } = route;
  const head = setHead(replies, path.startsWith('/v1/'), (key) => deps.quotaOf(key, route));
  // What is counted has a key, or is of a public route.
  const beforeSend = (request: ServedRequest, answer: Reply) =>
    route.beforeSend?.(request as ServedRequest & KeyRequest, answer) ?? answer;
  const fail = (request: { readonly id: string }, failure: unknown) => failed(request, failure, route);
  app.route({
    method: methodsOf(route),
    url: path,
    ...(route.bodyLimit > 0 && { bodyLimit: route.bodyLimit }),
    config: { route },
    onRequest: [guard(path, deps.guard), ...admissionHooks(route, { ...deps, inTime })],
    preValidation: refuseBody,
    preSerialization: route.beforeSend ? [runBeforeSend(beforeSend, fail), head] : head,
    onSend: transmit(replies, (status, ms) => deps.onAnswer?.(route, status, ms)),
    handler: (request) => {
      const answer = route.handle(request as ServedRequest & KeyRequest);
      return answer instanceof Promise ? inTime(request, route, answer) : answer;
    },
  });
}

/** Answers the methods that a path does not have with 405. */
function refuseOtherMethods(shared: Shared, path: string, onPath: readonly Route[]): void {
  const allowed = onPath.flatMap(methodsOf);
  const others = ROUTED_METHODS.filter((method) => !allowed.includes(method));
  // Registered, so that the router's own decoding of a path decides between 404 and 405.
  addRefusal(
    shared,
    path,
    others,
    (request, reply) => {
      if (exceedsTarget(onPath[0]?.targetLimit, request.raw.url)) refuse(request, reply, 'uri_too_long');
      else refuse(request, reply, 'method_not_allowed', { headers: { allow: allowed.join(', ') } });
    },
    showRefusalOf(onPath[0]),
  );
}

/** Registers methods that are refused on a path, whatever comes with them: before the body is looked at. */
function addRefusal(
  { app, deps, replies }: Shared,
  url: string,
  method: string[],
  refuseRequest: Refuse,
  showRefusal?: ShowRefusal,
): void {
  app.route({
    method,
    url,
    onRequest: [guard(url, deps.guard), (request, reply) => refuseRequest(request, reply)],
    preSerialization: [
      (_request, _reply, answer, done) => done(null, showRefusal?.(answer as Reply) ?? answer),
      setHead(replies, true),
    ],
    onSend: transmit(replies),
    handler: unreachable,
  });
}

function addMethods(app: FastifyInstance): void {
  for (const method of ROUTED_METHODS) {
    // Fastify would parse the body of OPTIONS, which is ignored here like the one of GET.
    const isBodyless = method === 'OPTIONS';
    if (isBodyless || !app.supportedMethods.includes(method))
      app.addHttpMethod(method, { overrideExisting: isBodyless });
  }
}

type Refuse = (request: FastifyRequest, reply: FastifyReply) => void;

/** Browsers take an answer for what it says that it is. */
const NO_SNIFFING = { 'x-content-type-options': 'nosniff' };
/** For a year (RFC 6797); custom domains are https as well. */
const STRICT_TRANSPORT = { 'strict-transport-security': 'max-age=31536000' };

/** Every method but CONNECT, which Node does not hand over as a request. */
const ROUTED_METHODS = METHODS.filter((method) => method !== 'CONNECT');

/** HEAD goes with GET (RFC 9110 section 9.3.2), except under /v1, where contract, Requests 8 excludes it. */
function methodsOf({ method, path }: Route): string[] {
  return method === 'GET' && !path.startsWith('/v1/') ? ['GET', 'HEAD'] : [method];
}

/** Fastify demands a handler; `onRequest` never goes on to it. */
function unreachable(): never {
  throw new Error('every request is answered in onRequest');
}
