/** The rules for every request, known path or not, as `onRequest` hooks. */
import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { soleHeader } from '../contract/request-body.ts';
import type { Reply } from '../contract/route.ts';
import { type ErrorCode, type RefusalOptions, refusal } from '../errors/error-catalog.ts';
import type { Misfits } from './misfits.ts';
import { isHost, type ServedHosts } from './own-host.ts';
import type { Probes } from './probe.ts';

export interface GuardDeps {
  readonly hosts: Pick<ServedHosts, 'isOwn' | 'isCustomDomain'>;
  readonly misfits: Misfits;
  readonly probes: Pick<Probes, 'note'>;
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
export function guard(url: string, { hosts, misfits, probes }: GuardDeps): onRequestHookHandler {
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
    probes.note(raw);
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

/** Returns the refusal of a message that a proxy in front could have understood in another way; null for any other. */
export function refuseAmbiguous(request: FastifyRequest): Reply | null {
  const message = ambiguityOf(request.raw);
  return message === null
    ? null
    : refusal(request, 'invalid_body', { message, headers: { connection: 'close' } });
}

/**
 * Tells why a proxy in front could have understood the message in another way than this server does: two Host headers
 * (RFC 9112 section 3.2), a Transfer-Encoding other than chunked, or one in a version without it (section 6.1). null: it could
 * not.
 */
function ambiguityOf({ rawHeaders, headers, httpVersion }: IncomingMessage): string | null {
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && httpVersion !== '1.1') {
    return 'The request has a Transfer-Encoding, which its version of HTTP does not define.';
  }
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'chunked') {
    return 'The Transfer-Encoding is not chunked.';
  }
  return soleHeader(rawHeaders, 'host') === null ? 'The request has more than one Host header.' : null;
}
