/** The rules for every request, known path or not, as `onRequest` hooks. */
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { type ErrorCode, type RefusalOptions, refusal } from './error-catalog.ts';
import { refuseAmbiguous } from './fastify.ts';
import type { Misfits } from './misfits.ts';
import { isHost, type ServedHosts } from './own-host.ts';

export interface GuardDeps {
  readonly hosts: Pick<ServedHosts, 'isOwn' | 'isCustomDomain'>;
  readonly misfits: Misfits;
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

/** Returns the hook of a path. */
export function guard(url: string, { hosts, misfits }: GuardDeps): onRequestHookHandler {
  const hasParameters = url.includes(':');
  const isTracking = url.startsWith('/tracking/');
  return (request, reply, done) => {
    const { raw } = request;
    const ambiguous = refuseAmbiguous(request);
    if (ambiguous !== null) return void reply.send(ambiguous);
    // The router takes an empty segment for a parameter, but /v1/trackers/ is not /v1/trackers/:tracker_id.
    if (hasParameters && Object.values(request.params as object).includes(''))
      return refuse(request, reply, 'not_found');
    misfits.noteForwarding(raw);
    const host = raw.headers.host ?? '';
    if (hosts.isOwn(host)) return done();
    // A proxy or a browser could read a Host that is none (RFC 9112 section 3.2: 400) as a custom domain.
    if (!isTracking && !isHost(host))
      return refuse(request, reply, 'invalid_body', { message: 'The Host header is not a host.' });
    const isCustom = hosts.isCustomDomain(host);
    misfits.noteHost(raw, isCustom);
    if (isTracking) return done();
    // A customer's domain has no API, pages or cookies of this service.
    const judge = (isCustomDomain: boolean): void => {
      if (isCustomDomain) refuse(request, reply, 'not_found');
      else done();
    };
    if (typeof isCustom === 'boolean') judge(isCustom);
    // The path's own rules are enough where the lookup of the domain fails.
    else isCustom.then(judge, () => done());
  };
}
