/** The HTTP server: Fastify with this service's limits, hooks and refusals. */
import { METHODS } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../platform/clock.ts';
import { type AdmissionDeps, admissionHooks, exceedsTarget } from './admission.ts';
import { type ConnectionLimits, limitConnections } from './connection-limits.ts';
import { watchConnections } from './drain.ts';
import { createFastify, defaultTimeouts, type RequestTimeouts } from './fastify.ts';
import { guardHooks, refuse } from './guards.ts';
import { onBehalfOf } from './on-behalf-of.ts';
import { countAnswer, type Replies, setHead, transmit } from './replies.ts';
import { addBodyParser, refuseBody } from './request-body.ts';
import { createErrorHandler, createFailed, dropAbandoned, type Log, timeLimit } from './request-errors.ts';
import { countRequests, type RequestLimit, type RequestsUnderWay } from './requests-under-way.ts';
import type { Answer, Route, RouteTable } from './route.ts';
import { decorateRequests, hasKey, type ServedRequest } from './served-request.ts';
import { createTurns, type GoOn, goOnIn, type RequestTurns } from './turns.ts';
import { createUntakenAnswers } from './untaken-answers.ts';

export interface ServerDeps extends AdmissionDeps {
  readonly routes: RouteTable;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether a Host has nothing but the paths under `/tracking/`. */
  readonly isCustomDomain?: (host: string) => boolean | Promise<boolean>;
  readonly requestTimeouts?: Partial<RequestTimeouts>;
  /** Whether callers reach the service by https alone. */
  readonly isHttps?: boolean;
  readonly connectionLimits?: ConnectionLimits;
  readonly requestLimit?: RequestLimit;
  /** Called with the status of every answer of a route, for metrics. */
  readonly onAnswer?: (route: Route, status: number, milliseconds: number) => void;
}

/** A server for these routes, not yet listening: `listen` serves, `inject` tests, `close` drains. */
export function buildServer(deps: ServerDeps): FastifyInstance {
  const timeouts = { ...defaultTimeouts, ...deps.requestTimeouts };
  const headers = { ...NO_SNIFFING, ...(deps.isHttps ? STRICT_TRANSPORT : {}) };
  const untaken = createUntakenAnswers({ writeMs: timeouts.writeMs, bytes: MAX_UNTAKEN_BYTES });
  const ownerOf: RequestTurns['ownerOf'] = (request) => deps.requestLimit?.callerOf(request)?.network ?? '';
  const replies: Replies = { closing: false, headers, untaken, ownerOf };
  const requestTurns: RequestTurns = { turns: createTurns(), ownerOf };
  const goOn = goOnIn(requestTurns);
  const app = createFastify(timeouts, replies, requestTurns);
  const connections = watchConnections(app.server);
  if (deps.connectionLimits) {
    limitConnections(app.server, deps.connectionLimits, { ...connections, networkOf: ownerOf });
  }
  app.addHook('preClose', (done) => {
    replies.closing = true;
    connections.cutSilent();
    done();
  });
  const underWay = countRequests(deps.requestLimit);
  const failed = createFailed(deps.log);
  const inTime = timeLimit(timeouts.handlerMs, failed);
  decorateRequests(app);
  addBodyParser(app, goOn);
  app.setErrorHandler(createErrorHandler(failed, underWay));
  app.setReplySerializer((answer) => (answer as Answer).body as string);
  const guards = guardHooks({ underWay, goOn, isCustomDomain: deps.isCustomDomain ?? (() => false) });
  const shared = { app, deps, replies, underWay, guards, goOn, failed, inTime };
  addMethods(app);
  for (const [path, onPath] of Map.groupBy(deps.routes, (route) => route.path)) {
    for (const route of onPath) addRoute(shared, route);
    refuseOtherMethods(shared, path, onPath);
  }
  // A route instead of `setNotFoundHandler`: that one comes after the body, and `OPTIONS *` does not reach it.
  addRefusal(shared, '*', ROUTED_METHODS, (request, reply) => refuse(request, reply, 'not_found'));
  return app;
}

/** What every route of a server shares. */
interface Shared {
  readonly app: FastifyInstance;
  readonly deps: ServerDeps;
  readonly replies: Replies;
  readonly underWay: RequestsUnderWay;
  readonly guards: ReturnType<typeof guardHooks>;
  readonly goOn: GoOn;
  readonly failed: ReturnType<typeof createFailed>;
  readonly inTime: ReturnType<typeof timeLimit>;
}

function addRoute(shared: Shared, route: Route): void {
  const { app, deps, replies, underWay, guards, goOn, failed, inTime } = shared;
  const { path } = route;
  const head = setHead(replies, path.startsWith('/v1/'), (key) => deps.quotaOf(key, route));
  const fail = (request: { readonly id: string }, failure: unknown) => failed(request, failure, route);
  app.route({
    method: methodsOf(route),
    url: path,
    ...(route.bodyLimit > 0 && { bodyLimit: route.bodyLimit }),
    config: { route },
    onRequest: [...guards(path), ...admissionHooks(route, { ...deps, goOn, inTime })],
    ...(route.method !== 'GET' && { preParsing: dropAbandoned(underWay) }),
    preValidation: refuseBody,
    preSerialization: route.answered ? [countAnswer(answeredBy(route), fail), head] : head,
    onSend: transmit(replies, underWay, (status, ms) => deps.onAnswer?.(route, status, ms)),
    handler: (request) => {
      const answer = handled(route, request as ServedRequest);
      return answer instanceof Promise ? inTime(request, route, answer) : answer;
    },
  });
}

/** Answers the methods that a path does not have with 405. */
function refuseOtherMethods(shared: Shared, path: string, onPath: readonly Route[]): void {
  const allowed = onPath.flatMap(methodsOf);
  const others = ROUTED_METHODS.filter((method) => !allowed.includes(method));
  // Registered, so that the router's own decoding of a path decides between 404 and 405.
  addRefusal(shared, path, others, (request, reply) => {
    if (exceedsTarget(onPath[0]?.targetLimit, request.raw.url)) refuse(request, reply, 'uri_too_long');
    else refuse(request, reply, 'method_not_allowed', { headers: { allow: allowed.join(', ') } });
  });
}

/** Registers methods that are refused on a path, whatever comes with them: before the body is looked at. */
function addRefusal(
  { app, replies, underWay, guards }: Shared,
  url: string,
  method: string[],
  refuseRequest: Refuse,
): void {
  app.route({
    method,
    url,
    onRequest: [...guards(url), (request, reply) => refuseRequest(request, reply)],
    preSerialization: setHead(replies, true),
    onSend: transmit(replies, underWay),
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

/** Runs the route; work for a partner spends that partner's share of the service. */
function handled(route: Route, request: ServedRequest): Answer | Promise<Answer> {
  if (route.access === 'public') return route.handle(request);
  if (!hasKey(request)) throw new TypeError(`${route.path} was reached without a key`);
  return onBehalfOf(request.caller.partner_id, () => route.handle(request));
}

/** Shows the route its answer; a request that was refused before authentication is not counted. */
const answeredBy =
  (route: Route) =>
  (request: ServedRequest, answer: Answer): Answer | Promise<Answer> => {
    if (route.access === 'public') return route.answered?.(request, answer) ?? answer;
    return hasKey(request) ? (route.answered?.(request, answer) ?? answer) : answer;
  };

type Refuse = (request: FastifyRequest, reply: FastifyReply) => void;

/** Ten of the longest answers; connections alone would let one client keep gigabytes in memory for a minute. */
const MAX_UNTAKEN_BYTES = 128 * 1_048_576;

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
