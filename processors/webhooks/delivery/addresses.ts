import { networkInterfaces } from 'node:os';
import pTimeout from 'p-timeout';
import {
  addressInHost,
  type DestinationPolicy,
  isAllowedAddress,
  isLocalhost,
  isOwnAddress,
  portOf,
} from '../../../domain/webhooks/destination.ts';
import type { Config } from '../../../platform/config/config.ts';
import { AttemptFailure } from './connections.ts';

/** The part of `dns.promises.Resolver` in use: it queries DNS servers only and never reads `/etc/hosts`. */
export interface Resolver {
  resolve4(name: string): Promise<string[]>;
  resolve6(name: string): Promise<string[]>;
}

const LOOPBACK = ['127.0.0.1', '::1'] as const;
const NO_SUCH_ADDRESS: readonly unknown[] = ['ENODATA', 'ENOTFOUND'];

/**
 * Resolves the host of a URL to the addresses that an attempt may connect to, sorted. Every one must be allowed (contract, Webhooks 1).
 * @param limitMs time limit of DNS
 * @throws AttemptFailure `dns`, `blocked_address`, `own_origin`
 */
export async function resolveAllowedAddresses(
  url: URL,
  policy: DestinationPolicy,
  resolver: Resolver,
  limitMs: number,
): Promise<readonly string[]> {
  const addresses = await addressesOf(url.hostname, policy, resolver, limitMs);
  if (!addresses.every((ip) => isAllowedAddress(ip, policy))) throw new AttemptFailure('blocked_address');
  if (addresses.some((ip) => isOwnAddress(ip, portOf(url), policy))) throw new AttemptFailure('own_origin');
  return addresses;
}

async function addressesOf(
  host: string,
  policy: DestinationPolicy,
  resolver: Resolver,
  limitMs: number,
): Promise<readonly string[]> {
  const literal = addressInHost(host);
  if (literal !== null) return [literal];
  // localhost has two addresses, and a development policy may allow only one of them.
  if (isLocalhost(host)) return LOOPBACK.filter((ip) => isAllowedAddress(ip, policy));
  const found = await pTimeout(
    Promise.all([orNone(resolver.resolve4(host)), orNone(resolver.resolve6(host))]),
    {
      milliseconds: limitMs,
      fallback: () => {
        throw new AttemptFailure('dns');
      },
    },
  );
  const addresses = [...new Set(found.flat())].sort();
  if (addresses.length === 0) throw new AttemptFailure('dns');
  return addresses;
}

/** A family may have no addresses, but a missing DNS answer could have held a forbidden one. */
function orNone(answer: Promise<string[]>): Promise<string[]> {
  return answer.catch((error: NodeJS.ErrnoException) => {
    if (NO_SUCH_ADDRESS.includes(error.code)) return [];
    throw new AttemptFailure('dns', { cause: error });
  });
}

const EVERY_ADDRESS: readonly string[] = ['0.0.0.0', '::'];

/** Creates the operator's policy of webhook destinations, which excludes the service's own URL and listeners. */
export function destinationPolicy(
  config: Pick<
    Config,
    | 'HOST'
    | 'PORT'
    | 'PUBLIC_URL'
    | 'PUBLIC_HOSTS'
    | 'WEBHOOK_ALLOW_HTTP'
    | 'WEBHOOK_ALLOW_NETWORKS'
    | 'WEBHOOK_ALLOW_PORTS'
  >,
): DestinationPolicy {
  return {
    allowHttp: config.WEBHOOK_ALLOW_HTTP,
    allowPorts: config.WEBHOOK_ALLOW_PORTS,
    allowNetworks: config.WEBHOOK_ALLOW_NETWORKS,
    ownOrigins: [
      ...(config.PUBLIC_URL === undefined ? [] : [config.PUBLIC_URL]),
      ...config.PUBLIC_HOSTS.map((host) => `https://${host}`),
      ...listeningHosts(config.HOST).map((host) => `http://${host}:${config.PORT}`),
    ],
  };
}

/** Returns all addresses of the machine if the service listens on all of them. */
function listeningHosts(host: string): string[] {
  const addresses = EVERY_ADDRESS.includes(host)
    ? Object.values(networkInterfaces()).flatMap((some) => some?.map(({ address }) => address) ?? [])
    : [host];
  // An address with a zone cannot be a URL's host.
  return addresses
    .filter((address) => !address.includes('%'))
    .map((address) => (address.includes(':') ? `[${address}]` : address));
}
