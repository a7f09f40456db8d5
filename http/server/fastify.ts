/** Fastify with the limits of this service, and with its refusals for requests that reach no route. */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { PublicRoute } from '../contract/route.ts';
import { refusal } from '../errors/error-catalog.ts';
import { refuseAmbiguous } from './guards.ts';
import { refuseConnect, refuseRaw } from './raw-refusals.ts';
import { type ReplyDefaults, transmit, writeHead } from './replies.ts';

/** How long the server waits, in milliseconds. */
export const defaultTimeouts = {
  /** For the head of a request; then 408. At most `requestMs`. */
  headersMs: 10_000,
  /** For a whole request, body included; then 408. */
  requestMs: 20_000,
  /** Between two requests on a connection. Longer than a proxy's, which then never meets a closing one. */
  keepAliveMs: 72_000,
  /** How often the first two are looked at. */
  checkEveryMs: 1_000,
  /** For authentication, admission and a handler together; then 503 `backend_timeout`. */
  handlerMs: 5_000,
  /** For the caller to take an answer; then the connection is cut. */
  writeMs: 60_000,
};

export type RequestTimeouts = Readonly<typeof defaultTimeouts>;

const MAX_HEAD_BYTES = 16_384;
/** More than any browser and the proxies behind it send. Node makes an object of them, for which a thousand take a millisecond. */
const MAX_HEADERS = 100;
/** Requests of one connection, the last of which is answered with `Connection: close`. */
const MAX_REQUESTS_PER_SOCKET = 10_000;
const NO_QUERY = {};

/** Creates the server without routes and hooks. `showRefusalOf`: how a refusal of this URL is shown to a person. */
export function createFastify(
  timeouts: RequestTimeouts,
  replies: ReplyDefaults,
  maxConnections: number,
  showRefusalOf: (url: string) => PublicRoute['showRefusal'],
): FastifyInstance {
  const app = Fastify({
    genReqId: () => randomUUID(),
    exposeHeadRoutes: false,
    return503OnClosing: false,
    // Longer than any head that the parser lets through: a path id of any length is its own route's to refuse.
    routerOptions: { maxParamLength: MAX_HEAD_BYTES, querystringParser: () => NO_QUERY },
    clientErrorHandler: refuseRaw(replies.headers),
    frameworkErrors: (_error, request, reply) =>
      refuseBadUrl(request, reply, replies, showRefusalOf(request.raw.url ?? '')),
    serverFactory: (serve) =>
      createServer(
        {
          requestTimeout: timeouts.requestMs,
          keepAliveTimeout: timeouts.keepAliveMs,
          headersTimeout: timeouts.headersMs,
          connectionsCheckingInterval: timeouts.checkEveryMs,
          maxHeaderSize: MAX_HEAD_BYTES,
          // Node's own 400 has no X-Request-ID; the routes ask for the header themselves.
          requireHostHeader: false,
        },
        serve,
      ),
  });
  app.server.maxHeadersCount = MAX_HEADERS;
  app.server.maxConnections = maxConnections;
  app.server.maxRequestsPerSocket = MAX_REQUESTS_PER_SOCKET;
  app.server.on('connect', refuseConnect(replies.headers));
  // An expectation other than 100-continue may be ignored (RFC 9110 section 10.1.1); Node's own 417 has no X-Request-ID.
  app.server.on('checkExpectation', (raw, response) => app.server.emit('request', raw, response));
  return app;
}

/** Refuses a path that cannot be decoded, for which Fastify runs no hooks. */
function refuseBadUrl(
  request: FastifyRequest,
  reply: FastifyReply,
  replies: ReplyDefaults,
  showRefusal: PublicRoute['showRefusal'],
): void {
  const refused = refusal(request, 'not_found');
  const answer = refuseAmbiguous(request) ?? showRefusal?.(refused) ?? refused;
  writeHead(reply, replies, true, answer);
  // A Buffer: Fastify adds a charset to the content type of a text.
  const payload = Buffer.from(answer.body as string);
  transmit(replies).call(request.server, request, reply, payload, () => reply.send(payload));
}
