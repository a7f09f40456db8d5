/** The checks of `doorplate doctor` on names, ports and the way through the proxy. */
import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { createServer, isIP } from 'node:net';
import { serviceUrl } from '../../bin/modules/domains.ts';
import { PROBE_AGENT, type SeenProbe } from '../../http/server/probe.ts';
import { within } from '../../platform/clock/waiting.ts';
import type { Config } from '../../platform/config/config.ts';
import type { ProcessState } from '../../queries/processes.ts';
import { bad, good, type Result } from './check-result.ts';

const DNS_MS = 3_000;

/** Checks that each host name in the configuration resolves from here. */
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
  const lookups = await Promise.all(
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
  const failed = lookups.filter((one) => one.failed);
  if (failed.length > 0) {
    return bad(
      failed.map(({ text }) => text).join('; '),
      `mend the name in ${failed.map(({ variable }) => variable).join(', ')}, or the resolver of this machine (/etc/resolv.conf)`,
    );
  }
  return good(
    lookups.length === 0
      ? 'no host names are configured, so that none has to resolve'
      : lookups.map(({ text }) => text).join('; '),
  );
}

/** Returns the host of a URL; empty for a folder of Unix sockets. */
function hostIn(url: string): string {
  const host = /^[a-z+]+:\/\/(?:[^@/]*@)?(\[[^\]]+\]|[^:/?,]+)/i.exec(url)?.[1] ?? '';
  return /^%2f/i.test(host) ? '' : host.replace(/^\[|\]$/g, '');
}

/** What answers at `OPS_PORT`. */
export type ProcessHere =
  | { readonly kind: 'none' }
  /** `unknown`: whose process it is cannot be decided, because PostgreSQL is away or the process is older than 0.3.0. */
  | { readonly kind: 'own' | 'unknown'; readonly role: string }
  /** A process of another installation. */
  | { readonly kind: 'other' };

/** Asks the process at `OPS_PORT` for its id, and looks for that in the registry. `processes`: null if it cannot be read. */
export async function findProcessHere(
  config: Config,
  processes: readonly ProcessState[] | null,
): Promise<ProcessHere> {
  const answer = await fetchJson(operationsUrl(config, '/process'));
  if (answer === null) return { kind: 'none' };
  if (typeof answer.process_id !== 'string') {
    const live = await fetchJson(operationsUrl(config, '/livez'));
    return live?.live === true ? { kind: 'unknown', role: 'all' } : { kind: 'none' };
  }
  const role = String(answer.role);
  if (processes === null) return { kind: 'unknown', role };
  return processes.some(({ id }) => id === answer.process_id) ? { kind: 'own', role } : { kind: 'other' };
}

const servesApi = (role: string): boolean => role === 'all' || role === 'api';

/** How a port is used; `own` and `unused` are as they should be. */
type PortState = 'free' | 'own' | 'unused' | 'doorplate' | 'taken';
const STATE_TEXT = {
  free: 'free',
  own: 'Doorplate listens',
  unused: 'not used by a process of role workers',
};

export async function checkPorts(config: Config, here: ProcessHere): Promise<Result> {
  const found = [
    { variable: 'PORT', host: config.HOST, port: config.PORT, state: await stateOfPort(config, here) },
    {
      variable: 'OPS_PORT',
      host: config.OPS_HOST,
      port: config.OPS_PORT,
      state: await stateOfOpsPort(config, here),
    },
  ];
  const taken = found.filter(({ state }) => state === 'taken' || state === 'doorplate');
  if (taken.length > 0) {
    const isDoorplate = taken.some(({ state }) => state === 'doorplate');
    const variables = taken.map(({ variable }) => variable).join(' and ');
    return bad(
      taken
        .map(
          ({ variable, host, port, state }) =>
            `${variable} ${port} on ${host} is used by another ${state === 'doorplate' ? 'process of Doorplate' : 'program'}`,
        )
        .join('; '),
      isDoorplate
        ? `run doctor with the PORT and OPS_PORT of the process that it is to check, or set another ${variables}`
        : `end that program (ss -ltnp 'sport = :${taken[0]?.port}' names it), or set another ${variables}`,
    );
  }
  return good(
    found
      .map(
        ({ variable, port, state }) => `${variable} ${port}: ${STATE_TEXT[state as keyof typeof STATE_TEXT]}`,
      )
      .join(', '),
  );
}

async function stateOfOpsPort(
  { OPS_HOST: host, OPS_PORT: port }: Config,
  here: ProcessHere,
): Promise<PortState> {
  if ('role' in here) return 'own';
  if (here.kind === 'other') return 'doorplate';
  return (await isFree({ host, port })) ? 'free' : 'taken';
}

/** Sends a probe to the public port: only the process at `OPS_PORT` can say whether it is the one that got it. */
async function stateOfPort(config: Config, here: ProcessHere): Promise<PortState> {
  const { HOST: host, PORT: port } = config;
  if (await isFree({ host, port })) return 'free';
  if ('role' in here && !servesApi(here.role)) return 'unused';
  const id = randomUUID();
  const answer = await sendProbe(localUrl({ host, port, path: '' }), id).catch(() => null);
  if (answer === null || !isHealthy(answer)) return 'taken';
  const arrived = (await lastProbe(config))?.id === id;
  return arrived && here.kind !== 'other' ? 'own' : 'doorplate';
}

interface Listening {
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

function isFree({ host, port }: Omit<Listening, 'path'>): Promise<boolean> {
  const { promise, resolve: known } = Promise.withResolvers<boolean>();
  const server = createServer();
  server.once('error', () => known(false));
  server.listen(port, host, () => server.close(() => known(true)));
  return promise;
}

const HTTP_MS = 3_000;

const localUrl = ({ host, port, path }: Listening): string => {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}${path}`;
};

/** @returns null if no JSON, or nothing, is answered in time */
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

const operationsUrl = ({ OPS_HOST: host, OPS_PORT: port }: Config, path: string): string =>
  localUrl({ host, port, path });

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Sends a request that the process which gets it remembers by the id. @throws if there is no answer */
async function sendProbe(origin: string, id: string): Promise<Answer> {
  const answer = await fetch(`${origin}/healthz`, {
    headers: { 'user-agent': `${PROBE_AGENT}${id}` },
    redirect: 'manual',
    signal: AbortSignal.timeout(HTTP_MS),
  });
  return { status: answer.status, text: await answer.text() };
}

const isHealthy = ({ status, text }: Answer): boolean => status === 200 && text.includes('"status":"ok"');

/** Reads the last probe that the process at `OPS_PORT` got. */
const lastProbe = async (config: Config): Promise<SeenProbe | null> =>
  ((await fetchJson(operationsUrl(config, '/probe'))) as { last?: SeenProbe | null } | null)?.last ?? null;

/**
 * Sends a request through `PUBLIC_URL` and asks the process on this machine how it arrived. `processes`: those of the
 * registry; null: it cannot be read.
 */
export async function checkProxy(
  config: Config,
  here: ProcessHere,
  processes: readonly ProcessState[] | null,
): Promise<Result> {
  const skipped = whyNoProcess(config, here, processes);
  if (skipped !== null) return good(`skipped: ${skipped}`);
  const publicUrl = serviceUrl(config);
  const id = randomUUID();
  try {
    const answer = await sendProbe(publicUrl, id);
    if (!isHealthy(answer)) {
      return bad(
        `PUBLIC_URL ${publicUrl} is answered by something else (HTTP ${answer.status}) than Doorplate`,
        'let the proxy lead PUBLIC_URL to this service, or mend PUBLIC_URL',
      );
    }
  } catch (error) {
    // As in a container, whose host publishes the port at an address of its own.
    if (isLoopback(new URL(publicUrl).hostname) && isEveryAddress(config.HOST)) {
      return good(`skipped: PUBLIC_URL ${publicUrl} can be called on the host of this container alone`);
    }
    const cause = (error as Error).cause as Error | undefined;
    return bad(
      `PUBLIC_URL ${publicUrl} cannot be reached from here: ${cause?.message ?? (error as Error).message}`,
      'mend PUBLIC_URL, its name or its certificate; where this machine alone cannot reach it, check it from outside',
    );
  }
  const last = await lastProbe(config);
  if (last?.id !== id)
    return good(`PUBLIC_URL ${publicUrl} leads to Doorplate, to another process than the one here`);
  return judgeProbe(last, publicUrl);
}

/** Returns why no process here can say how a request arrives; null: the one at `OPS_PORT` can. */
function whyNoProcess(
  { OPS_PORT }: Config,
  here: ProcessHere,
  processes: readonly ProcessState[] | null,
): string | null {
  if ('role' in here) {
    if (servesApi(here.role)) return null;
    return `the process here has the role ${here.role} and does not serve the API; run doctor again beside one that does`;
  }
  const serving = processes?.find(({ role }) => servesApi(role));
  if (serving !== undefined) {
    return `process ${serving.id} (${serving.role}) serves the API, but not at OPS_PORT ${OPS_PORT} of this machine; run doctor again with its PORT and OPS_PORT`;
  }
  return processes === null
    ? `no process of this installation is known at OPS_PORT ${OPS_PORT} of this machine`
    : 'no process of this installation serves the API; run doctor again beside one';
}

const isLoopback = (hostname: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
const isEveryAddress = (host: string): boolean => host === '0.0.0.0' || host === '::';

/** Judges how the request arrived. It was sent without forwarding headers, so that proxies have made all of them. */
export function judgeProbe(seen: SeenProbe, publicUrl: string): Result {
  const { host, is_own_host, peer, is_trusted_peer, client, forwarded_for, forwarded_proto } = seen;
  if (!is_own_host) {
    return bad(
      `a request for PUBLIC_URL ${publicUrl} arrives with Host ${host}: pixels are refused (untrusted_collector)`,
      'let the proxy keep Host (docs/configuration.md, Another proxy); PUBLIC_HOSTS is for other public names of the service alone',
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
      'let it send X-Forwarded-For (docs/configuration.md, Another proxy)',
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
