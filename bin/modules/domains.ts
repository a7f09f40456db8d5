import { Resolver } from 'node:dns/promises';
import { createDomainCommands } from '../../commands/domains/manage-domains.ts';
import { plainName } from '../../domain/domains/hostname.ts';
import type { Route } from '../../http/contract/route.ts';
import { createOwnHost } from '../../http/server/own-host.ts';
import type { Config } from '../../platform/config/config.ts';
import { createSemaphores } from '../../platform/limits/semaphore.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { OpsHandler } from '../../platform/telemetry/ops-server.ts';
import { hasToken, proofToken, startDomainChecks } from '../../processors/domains/check-domains.ts';
import { keepDomains } from '../../processors/domains/keep-domains.ts';
import { domains } from '../../projections/domains/domains.ts';
import { createCertificateNames } from '../../queries/domains/directory.ts';
import {
  domainReadRoutes,
  hasAllDomains,
  readCheckedAt,
  tlsAllowedHandler,
} from '../../read-api/domains/domains.ts';
import { domainRoutes as changingRoutes } from '../../write-api/domains/domains.ts';
import type { ApiContext } from '../api-context.ts';
import type { Runtime } from '../runtime.ts';
import type { RunningWork, WorkerContext, WorkerModule } from '../worker-context.ts';

/** Returns the base URL for callers, pixels and the CNAMEs of custom domains. */
export const serviceUrl = ({ PUBLIC_URL, HOST, PORT }: Config): string =>
  PUBLIC_URL ?? `http://${HOST.includes(':') ? `[${HOST}]` : HOST}:${PORT}`;

const RESOLVER = { timeout: 1_500, tries: 2 } as const;
/** Asks the servers of `DNS_SERVERS`, or else the system's. */
const resolversOf =
  ({ DNS_SERVERS }: Config) =>
  async (): Promise<Resolver> => {
    const resolver = new Resolver(RESOLVER);
    if (DNS_SERVERS.length > 0) resolver.setServers(DNS_SERVERS);
    return resolver;
  };

/** Time limit of the TXT lookup in a POST of a name that is active elsewhere. */
const PROOF_MS = 2_000;

/** Each lookup has a socket, and a silent DNS server keeps it. */
const PROOFS_OF_PARTNER = {
  limit: 4,
  maxWaitMs: 4_000,
};

const tokens =
  ({ digest }: Runtime) =>
  (hostname: string, partnerId: string): string =>
    proofToken(digest, hostname, partnerId);

/** Returns the host name without a port. */
const serviceHostOf = (url: string): string => plainName(new URL(url).hostname);

/** Builds the routes with which partners manage custom domains. */
export function domainRoutes(context: ApiContext): Route[] {
  const { runtime, publicUrl, trackerCommands } = context;
  const { config, db, store } = runtime;
  const tokenOf = tokens(runtime);
  const newResolver = resolversOf(config);
  const serviceHost = serviceHostOf(publicUrl);
  const proofs = createSemaphores(PROOFS_OF_PARTNER);
  const commands = createDomainCommands({
    store,
    ownHosts: [serviceHost, ...config.PUBLIC_HOSTS],
    trackerRefusal: ({ partner_id, tracker_id }) => trackerCommands.absence(partner_id, tracker_id),
    isFull: (partnerId) => hasAllDomains(db, partnerId),
    isProven: (hostname, partnerId) =>
      proofs.enter(partnerId, async () =>
        hasToken(await newResolver(), hostname, tokenOf(hostname, partnerId), AbortSignal.timeout(PROOF_MS)),
      ),
  });
  return [
    ...domainReadRoutes({
      db,
      trackers: context.trackers,
      serviceHost,
      tokenOf,
      waitForHead: context.waitForHead([domains.name]),
    }),
    ...changingRoutes({
      commands,
      serviceHost,
      tokenOf,
      waitForHead: context.waitForHead([domains.name]),
      projected: context.ownWrite([domains.name]),
      changed: context.domainNames.forget,
      checkedAt: (domainId) => readCheckedAt(db, domainId),
    }),
  ];
}

export const domainWork = ({ runtime, metrics }: WorkerContext): WorkerModule => ({
  processors: { visits: [keepDomains(runtime)] },
  start: async () => startChecks(runtime, metrics),
});

function startChecks(runtime: Runtime, metrics: Metrics): RunningWork {
  const { config } = runtime;
  return startDomainChecks({
    ...runtime,
    serviceHost: serviceHostOf(serviceUrl(config)),
    newResolver: resolversOf(config),
    tokenOf: tokens(runtime),
    onCheck: (outcome) => metrics.domainChecks.inc({ outcome }),
  });
}

/** Handles GET /tls-allowed of the operations listener. */
export const tlsAllowed = ({ config, pool }: Runtime): OpsHandler =>
  tlsAllowedHandler(createOwnHost(serviceUrl(config), config.PUBLIC_HOSTS), createCertificateNames(pool));
