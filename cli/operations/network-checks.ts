/** The checks of `doorplate doctor` on names, ports and the way through the proxy. */
import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { createServer, isIP } from 'node:net';
import { serviceUrl } from '../../bin/modules/domains.ts';
import { PROBE_AGENT, type SeenProbe } from '../../http/server/probe.ts';
import { within } from '../../platform/clock/waiting.ts';
import type { Config } from '../../platform/config/config.ts';
import { bad, good, type Result } from './check-result.ts';

const DNS_MS = 3_000;

/** The names that the configuration has; a name that does not resolve from here is not reached from here. */
export async function checkNames(config: Config): Promise<Result> {
  const named: readonly (readonly [string, string | undefined])[] = [
    ['PUBLIC_URL', config.PUBLIC_URL],
    ['DATABASE_URL', config.DATABASE_URL],
    ['EVENTSTORE_URL', config.EVENTSTORE_URL],
    ...config.providers.map((one) => [`provider ${one.name}`, 'url' in one ? one.url : undefined] as const),
  ];
  const hosts = named.flatMap(([variable, url]) => {
    const host = hostIn(url ?? '');
    return host === '' || host === 'localhost' || isIP(host) !== 0 ? [] : [{ variable, host }];
  });
  const looked = await Promise.all(
    hosts.map(({ variable, host }) =>
      within(lookup(host), DNS_MS, () => new Error(`no answer within ${DNS_MS / 1_000} s`)).then(
        ({ address }) => ({ variable, text: `${host} is ${address}`, failed: false }),
        (error: NodeJS.ErrnoException) => ({
          variable,
          text: `${host} of ${variable} does not resolve (${error.code ?? error.message})`,
          failed: true,
        }),
      ),
    ),
  );
  const failed = looked.filter((one) => one.failed);
  if (failed.length > 0) {
    return bad(
      failed.map(({ text }) => text).join('; '),
      `mend the name in ${failed.map(({ variable }) => variable).join(', ')}, or the resolver of this machine (/etc/resolv.conf)`,
    );
  }
  return good(
    looked.length === 0
      ? 'no host names are configured, so that none has to resolve'
      : looked.map(({ text }) => text).join('; '),
  );
}

/** Returns the host of a URL; empty for a folder of Unix sockets. */
function hostIn(url: string): string {
  const host = /^[a-z+]+:\/\/(?:[^@/]*@)?(\[[^\]]+\]|[^:/?,]+)/i.exec(url)?.[1] ?? '';
  return /^%2f/i.test(host) ? '' : host.replace(/^\[|\]$/g, '');
}

export async function checkPorts(config: Config): Promise<Result> {
  const wanted = [
    { variable: 'PORT', host: config.HOST, port: config.PORT, path: '/healthz' },
    { variable: 'OPS_PORT', host: config.OPS_HOST, port: config.OPS_PORT, path: '/livez' },
  ];
  const found = await Promise.all(
    wanted.map(async (one) => ({
      ...one,
      state: (await isFree(one)) ? 'free' : (await isOurs(one)) ? 'ours' : 'taken',
    })),
  );
  const taken = found.filter(({ state }) => state === 'taken');
  if (taken.length > 0) {
    return bad(
      taken
        .map(({ variable, host, port }) => `${variable} ${port} on ${host} is used by another program`)
        .join('; '),
      `end that program (ss -ltnp 'sport = :${taken[0]?.port}' names it), or set another ${taken.map(({ variable }) => variable).join(' and ')}`,
    );
  }
  return good(
    found
      .map(
        ({ variable, port, state }) =>
          `${variable} ${port}: ${state === 'free' ? 'free' : 'Doorplate listens'}`,
      )
      .join(', '),
  );
}

interface Listening {
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

function isFree({ host, port }: Listening): Promise<boolean> {
  const { promise, resolve: known } = Promise.withResolvers<boolean>();
  const server = createServer();
  server.once('error', () => known(false));
  server.listen(port, host, () => server.close(() => known(true)));
  return promise;
}

const HTTP_MS = 3_000;

const isOurs = async (address: Listening): Promise<boolean> => {
  const answer = await fetchJson(localUrl(address));
  return answer !== null && (answer.status === 'ok' || answer.live === true);
};

const localUrl = ({ host, port, path }: Listening): string => {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}${path}`;
};

/** null: no JSON came, or no answer. */
async function fetchJson(url: string): Promise<Record<string, unknown> | null> {
  try {
    return (await (await fetch(url, { signal: AbortSignal.timeout(HTTP_MS) })).json()) as Record<
      string,
      unknown
    >;
  } catch {
    return null;
  }
}

/** Sends a request through `PUBLIC_URL` and asks the process on this machine how it arrived. */
export async function checkProxy(config: Config): Promise<Result> {
  const publicUrl = serviceUrl(config);
  const probe = { host: config.OPS_HOST, port: config.OPS_PORT, path: '/probe' };
  if ((await fetchJson(localUrl(probe))) === null) {
    return good('skipped: no process that serves the API runs on this machine; run doctor again beside one');
  }
  const id = randomUUID();
  let text: string;
  try {
    const answer = await fetch(`${publicUrl}/healthz`, {
      headers: { 'user-agent': `${PROBE_AGENT}${id}` },
      redirect: 'manual',
      signal: AbortSignal.timeout(HTTP_MS),
    });
    text = await answer.text();
    if (answer.status !== 200 || !text.includes('"status":"ok"')) {
      return bad(
        `PUBLIC_URL ${publicUrl} is answered by something else (HTTP ${answer.status}) than Doorplate`,
        'let the proxy lead PUBLIC_URL to this service, or mend PUBLIC_URL',
      );
    }
  } catch (error) {
    const cause = (error as Error).cause as Error | undefined;
    return bad(
      `PUBLIC_URL ${publicUrl} cannot be reached from here: ${cause?.message ?? (error as Error).message}`,
      'mend PUBLIC_URL, its name or its certificate; where this machine alone cannot reach it, check it from outside',
    );
  }
  const { last = null } = (await fetchJson(localUrl(probe))) as { last: SeenProbe | null };
  if (last?.id !== id)
    return good(`PUBLIC_URL ${publicUrl} leads to Doorplate, to another process than the one here`);
  return judgeProbe(last, publicUrl);
}

/** Judges how the request arrived. It was sent without forwarding headers, so that proxies have made all of them. */
export function judgeProbe(seen: SeenProbe, publicUrl: string): Result {
  const { host, is_own_host, peer, is_trusted_peer, client, forwarded_for, forwarded_proto } = seen;
  if (!is_own_host) {
    return bad(
      `a request for PUBLIC_URL ${publicUrl} arrives with Host ${host}: pixels are refused (untrusted_collector)`,
      'let the proxy keep Host (docs/operations.md, Another proxy); PUBLIC_HOSTS is for other public names of the service alone',
    );
  }
  if (forwarded_for !== null && !is_trusted_peer) {
    return bad(
      `TRUSTED_PROXIES is too narrow: the proxy ${peer} forwards requests and is not listed, so that all visitors count as one`,
      `add ${peer} to TRUSTED_PROXIES`,
    );
  }
  const [first] = (forwarded_for ?? '').split(',').map((entry) => entry.trim());
  if (first !== undefined && first !== '' && !first.includes(client)) {
    return bad(
      `TRUSTED_PROXIES is too narrow: ${client} counts as the visitor, and X-Forwarded-For begins with ${first}`,
      `add ${client} to TRUSTED_PROXIES, if it is a proxy of yours`,
    );
  }
  if (forwarded_for === null && forwarded_proto !== null) {
    return bad(
      'the proxy sends no X-Forwarded-For, so that all visitors count as one',
      'let it send X-Forwarded-For (docs/operations.md, Another proxy)',
    );
  }
  if (forwarded_proto === 'https' && publicUrl.startsWith('http:')) {
    return bad(
      `callers come by https, and PUBLIC_URL ${publicUrl} makes links and snippets that say http`,
      `PUBLIC_URL=${publicUrl.replace('http:', 'https:')}`,
    );
  }
  return good(`PUBLIC_URL ${publicUrl} leads here, and ${client} counts as the visitor`);
}
