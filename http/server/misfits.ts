/** Warns the operator where `PUBLIC_URL`, `PUBLIC_HOSTS` or `TRUSTED_PROXIES` do not fit the requests that arrive. */
import type { IncomingMessage } from 'node:http';
import { HOUR } from '../../domain/kernel/time.ts';
import type { Log } from '../errors/request-errors.ts';
import { isLoopbackHost } from './own-host.ts';

export interface MisfitDeps {
  readonly publicUrl: string;
  readonly isTrusted: (address: string) => boolean;
  readonly log: Pick<Log, 'warn'>;
  /** Milliseconds. */
  readonly now: () => number;
}

/** Each setting is named at most once an hour. */
export interface Misfits {
  /** Looks at what a proxy says of a request. */
  noteForwarding(request: IncomingMessage): void;
  /** Looks at a Host that is not the service's own. */
  noteHost(request: IncomingMessage, isCustomDomain: boolean | Promise<boolean>): void;
}

/** Creates the watch on settings. */
export function createMisfits({ publicUrl, isTrusted, log, now }: MisfitDeps): Misfits {
  const isHttp = publicUrl.startsWith('http:');
  const quietUntil = new Map<string, number>();

  function warn(setting: string, details: object, message: string): void {
    if (now() < (quietUntil.get(setting) ?? 0)) return;
    quietUntil.set(setting, now() + HOUR);
    log.warn({ setting, ...details }, `${setting}: ${message}`);
  }

  return {
    noteForwarding({ headers, socket }) {
      const forwarded = headers['x-forwarded-for'] ?? headers.forwarded;
      const proto = isHttp ? headers['x-forwarded-proto'] : undefined;
      if (forwarded === undefined && proto === undefined) return;
      const peer = socket.remoteAddress ?? '';
      if (!isTrusted(peer)) {
        const message = 'a peer that is not listed forwards requests; all its callers count as one visitor';
        if (forwarded !== undefined) warn('TRUSTED_PROXIES', { peer }, message);
      } else if (headers['x-forwarded-for'] === undefined && forwarded !== undefined) {
        const message = 'a proxy sends Forwarded alone; the client is read from X-Forwarded-For';
        warn('TRUSTED_PROXIES', { peer }, message);
      } else if (proto === 'https') {
        const message = 'callers come by https, and links and snippets name http';
        warn('PUBLIC_URL', { public_url: publicUrl, forwarded_proto: 'https' }, message);
      }
    },
    noteHost({ headers: { host = '' }, url }, isCustomDomain) {
      // A probe asks by whatever name the machine has.
      if (host === '' || url === '/healthz' || isLoopbackHost(host)) return;
      const judge = (isCustom: boolean): void => {
        const message = "requests arrive for a Host that is neither the service's own nor a custom domain";
        if (!isCustom) warn('PUBLIC_URL or PUBLIC_HOSTS', { host: host.slice(0, 255) }, message);
      };
      if (typeof isCustomDomain === 'boolean') judge(isCustomDomain);
      else isCustomDomain.then(judge, () => undefined);
    },
  };
}
