import { networkInterfaces } from 'node:os';
import pTimeout from 'p-timeout';
import { embeddedIpv4 } from '../../../domain/kernel/address.ts';
import {
  addressInHost,
  type DestinationPolicy,
  isAllowedAddress,
  isLocalhost,
  isOwnAddress,
  portOf,
} from '../../../domain/webhooks/destination.ts';
import type { Config } from '../../../platform/config/config.ts';
import { coalesceNextOf } from '../../../platform/limits/coalesce.ts';
import { AttemptFailure } from './connections.ts';

/** The part of `dns.promises.Resolver` in use: it queries DNS servers only and never reads `/etc/hosts`. */
export interface Resolver {
  resolve4(name: string): Promise<string[]>;
  resolve6(name: string): Promise<string[]>;
}

const LOOPBACK = ['127.0.0.1', '::1'] as const;

/** Returns the addresses of a name by DNS, sorted. @throws AttemptFailure `dns` */
export type Lookup = (name: string) => Promise<readonly string[]>;

/** An attempt waits no longer for the lookup before its own, which has to end within the same limit. */
const PATIENCE_MS = 250;

/**
 * Attempts that begin while a name is looked up share the next lookup, which is newer than each of them: a backlog would ask for the
 * same name hundreds of times a second, and set timers for each. `limitMs`: of one lookup.
 */
export const shareLookups = (resolver: Resolver, limitMs: number): Lookup =>
  coalesceNextOf((name) => lookUp(name, resolver, limitMs), 0, PATIENCE_MS);

/**
 * Resolves the host of a URL to the addresses that an attempt may connect to. Every one must be allowed (contract, Webhooks 1).
 * @throws AttemptFailure `dns`, `blocked_address`, `own_origin`
 */
export async function resolveAllowedAddresses(
  url: URL,
  policy: DestinationPolicy,
  lookup: Lookup,
): Promise<readonly string[]> {
  const addresses = await addressesOf(url.hostname, policy, lookup);
  if (!addresses.every((ip) => isAllowedAddress(ip, policy))) throw new AttemptFailure('blocked_address');
  if (addresses.some((ip) => isOwnAddress(ip, portOf(url), policy))) throw new AttemptFailure('own_origin');
  return addresses;
}

async function addressesOf(
  host: string,
  policy: DestinationPolicy,
  lookup: Lookup,
): Promise<readonly string[]> {
  const literal = addressInHost(host);
  if (literal !== null) return [literal];
  // localhost has two addresses, and a development policy may allow only one of them.
  if (isLocalhost(host)) return LOOPBACK.filter((ip) => isAllowedAddress(ip, policy));
  return lookup(host);
}

async function lookUp(name: string, resolver: Resolver, limitMs: number): Promise<readonly string[]> {
  const answers = [addressesIn(resolver.resolve4(name)), addressesIn(resolver.resolve6(name))];
  const both = pTimeout(Promise.all(answers), {
    milliseconds: limitMs * FOR_BOTH,
    fallback: async () => [await firstWithAddresses(answers)],
  });
  const found = await pTimeout(both, {
    milliseconds: limitMs,
    fallback: () => {
      throw new AttemptFailure('dns');
    },
  });
  const addresses = [...new Set(withoutSynthesized(found.flat()))].sort();
  if (addresses.length === 0) throw new AttemptFailure('dns');
  return addresses;
}

/** Share of the time limit after which the addresses of one family do for the answer of both. */
const FOR_BOTH = 2 / 3;

/**
 * Returns no addresses where the family has none or its answer fails: name servers that know A alone often fail for AAAA. What
 * the answer would have held is never connected to.
 */
const addressesIn = (answer: Promise<string[]>): Promise<string[]> => answer.catch(() => []);

/** @throws AttemptFailure if no answer has an address */
const firstWithAddresses = (answers: readonly Promise<string[]>[]): Promise<string[]> =>
  Promise.any(
    answers.map(async (answer) => {
      const addresses = await answer;
      if (addresses.length === 0) throw new AttemptFailure('dns');
      return addresses;
    }),
  ).catch(() => {
    throw new AttemptFailure('dns');
  });

/** Leaves out what a resolver with DNS64 (RFC 6147) makes of the IPv4 addresses of the same name. */
function withoutSynthesized(addresses: readonly string[]): readonly string[] {
  const ipv4 = new Set(addresses.filter((address) => !address.includes(':')));
  return addresses.filter((address) => !ipv4.has(embeddedIpv4(address) ?? ''));
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
    | 'isDemo'
  >,
): DestinationPolicy {
  return {
    allowHttp: config.WEBHOOK_ALLOW_HTTP,
    allowPorts: config.WEBHOOK_ALLOW_PORTS,
    allowNetworks: config.WEBHOOK_ALLOW_NETWORKS,
    onlyNetworks: config.isDemo,
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
