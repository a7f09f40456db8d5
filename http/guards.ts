/** The rules for every request, known path or not, as `onRequest` hooks. */
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { type ErrorCode, type RefusalOptions, refusal } from './error-catalog.ts';
import { refuseAmbiguous } from './fastify.ts';
import { isHost } from './own-host.ts';
import type { RequestsUnderWay } from './requests-under-way.ts';
import type { GoOn } from './turns.ts';

interface Deps {
  readonly underWay: Pick<RequestsUnderWay, 'enter'>;
  readonly goOn: GoOn;
  readonly isCustomDomain: (host: string) => boolean | Promise<boolean>;
}

/** Sends the refusal; the hook that calls it does not go on. */
export function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  code: ErrorCode,
  options?: RefusalOptions,
): void {
  reply.send(refusal(request, code, options));
}

/** Returns a function that gives the hooks of a path. */
export const guardHooks = (deps: Deps) => {
  const onCustomDomains = refuseOnCustomDomains(deps);
  return (url: string): onRequestHookHandler[] =>
    url.startsWith('/tracking/') ? [guard(url, deps)] : [guard(url, deps), onCustomDomains];
};

const guard =
  (url: string, { underWay }: Deps): onRequestHookHandler =>
  (request, reply, done) => {
    const ambiguous = refuseAmbiguous(request);
    if (ambiguous !== null) return void reply.send(ambiguous);
    // The router takes an empty segment for a parameter, but /v1/trackers/ is not /v1/trackers/:tracker_id.
    const isEmpty = url.includes(':') && Object.values(request.params as object).includes('');
    if (isEmpty) refuse(request, reply, 'not_found');
    else if (!underWay.enter(request.raw)) refuse(request, reply, 'api_busy');
    else done();
  };

/**
 * A customer's domain has no API, pages or cookies of this service: 404 for all but `/tracking/`. A Host that is none
 * (RFC 9112 section 3.2: 400) could be read as such a domain by a proxy or a browser.
 */
const refuseOnCustomDomains =
  ({ isCustomDomain, goOn }: Deps): onRequestHookHandler =>
  (request, reply, done) => {
    const judge = (isCustom: boolean): void => {
      if (isCustom) refuse(request, reply, 'not_found');
      else done();
    };
    const host = request.raw.headers.host ?? '';
    if (!isHost(host))
      return refuse(request, reply, 'invalid_body', { message: 'The Host header is not a host.' });
    const isCustom = isCustomDomain(host);
    if (typeof isCustom === 'boolean') judge(isCustom);
    // The path's own rules are enough where the lookup of the domain fails.
    else void isCustom.catch(() => false).then((is) => goOn(request.raw, () => judge(is)));
  };
