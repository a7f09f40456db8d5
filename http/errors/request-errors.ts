/** The error handler: a request that fails gets the answer of its error code. */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import type { Reply, Route } from '../contract/route.ts';
import { type ErrorCode, refusal } from './error-catalog.ts';
import { BackendTimeout, failureCode } from './failures.ts';

/** The part of pino's logger that the server needs. */
export interface Log {
  error(details: object, message: string): void;
  warn(details: object, message: string): void;
}

/** Logs a failure and returns its answer, a 503. */
export type Failed = (request: { readonly id: string }, failure: unknown, route: Route) => Reply;

export const createFailed =
  (log: Log): Failed =>
  ({ id }, failure, route) => {
    const code = publicErrorCode(failureCode(failure), route);
    // Load shedding is expected, and a log line for each shed request would add to the load.
    if (code !== 'api_busy') {
      const error = failure instanceof Error ? failure : new Error(String(failure));
      const reason = code === 'service_unavailable' ? { stack: error.stack } : { reason: error.message };
      // Neither query nor headers, which hold addresses and keys.
      log.error(
        { request_id: id, method: route.method, path: route.path, code, ...reason },
        'request failed',
      );
    }
    return refusal({ id }, code);
  };

function publicErrorCode(code: ErrorCode, { unavailable }: Route): ErrorCode {
  return code === 'backend_unavailable' || code === 'backend_timeout' ? (unavailable ?? code) : code;
}

/** For `setErrorHandler`. */
export const createErrorHandler =
  (failed: Failed) =>
  (error: FastifyError, request: FastifyRequest, reply: FastifyReply): Reply | undefined => {
    if (isAborted(error, request)) {
      reply.hijack();
      return;
    }
    // The answer that failed may have left headers.
    for (const name of Object.keys(reply.getHeaders())) {
      // Fastify says close with a body that is too large, but `transmit` drains it. An empty list leaves the header to Node.
      if (name === 'connection') reply.header(name, []);
      else reply.removeHeader(name);
    }
    if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') return refusal(request, 'body_too_large');
    const { route } = request.routeOptions.config;
    return route ? failed(request, error, route) : refusal(request, 'service_unavailable');
  };

/** Returns whether the caller left while its body was read: there is no answer, and nothing to count. */
const isAborted = (error: FastifyError, { raw }: FastifyRequest): boolean =>
  error.statusCode === 400 && raw.destroyed && !raw.complete;

interface WaitingRequest {
  readonly id: string;
  /** How long its earlier steps took, milliseconds. */
  waitedMs: number;
}

/**
 * Limits in time what one request waits for, all its steps together; a failure that comes later is logged. The time in which its
 * body arrives is the caller's own.
 */
export const timeLimit =
  (milliseconds: number, failed: Failed) =>
  <T>(request: WaitingRequest, route: Route, work: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      let isLate = false;
      const begun = performance.now();
      const end = (): void => {
        clearTimeout(timer);
        request.waitedMs += performance.now() - begun;
      };
      const timer = setTimeout(() => {
        isLate = true;
        reject(new BackendTimeout(`no answer within ${milliseconds} ms`));
      }, milliseconds - request.waitedMs);
      work.then(
        (value) => {
          end();
          resolve(value);
        },
        (failure) => {
          end();
          if (isLate) failed(request, failure, route);
          reject(failure);
        },
      );
    });
