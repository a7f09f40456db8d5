/** What this service adds to Fastify's request: with it, a Fastify request is an `ApiRequest`. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ApiKey, ApiRequest, Route } from '../contract/route.ts';

declare module 'fastify' {
  interface FastifyRequest extends Pick<ApiRequest, 'peer' | 'header'> {
    /** null before authentication, and on public routes. */
    caller: ApiKey | null;
    receivedAt: number;
    startedAt: number;
    /** How long it has waited for authentication, admission and its handler, milliseconds. */
    waitedMs: number;
    /** Whether the route's `beforeSend` hook has yet to see the answer. */
    isCounted: boolean;
  }
  interface FastifyContextConfig {
    /** Undefined where no route of the table answers: 404 and 405. */
    readonly route?: Route;
  }
}

/** A request as the hooks of a route have it. */
export type ServedRequest = FastifyRequest<{
  Params: Readonly<Record<string, string>>;
  Querystring: string;
}>;

/** Declares the additions. */
export function decorateRequests(app: FastifyInstance): void {
  app.decorateRequest('caller', null);
  app.decorateRequest('receivedAt', 0);
  app.decorateRequest('startedAt', 0);
  app.decorateRequest('waitedMs', 0);
  app.decorateRequest('isCounted', false);
  app.decorateRequest('peer', {
    getter() {
      return this.raw.socket.remoteAddress ?? '';
    },
  });
  app.decorateRequest('header', function header(this: FastifyRequest, name: string) {
    const value = this.raw.headers[name.toLowerCase()];
    // RFC 9110 section 5.3.
    return Array.isArray(value) ? value.join(', ') : value;
  });
}

/** The part of a request target behind the first `?`; '' without one. Fastify's own also ends the path at a `#`. */
export function queryOf(target: string): string {
  const mark = target.indexOf('?');
  return mark === -1 ? '' : target.slice(mark + 1);
}
