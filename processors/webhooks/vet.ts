import pTimeout from 'p-timeout';
import {
  addressInHost,
  type DestinationPolicy,
  isAllowedAddress,
  isLocalhost,
  isOwnAddress,
  portOf,
} from '../../domain/webhooks/destination.ts';
import { AttemptFailure } from './attempt-failure.ts';

/** The part of `dns.promises.Resolver` in use: it queries DNS servers only and never reads `/etc/hosts`. */
export interface Resolver {
  resolve4(name: string): Promise<string[]>;
  resolve6(name: string): Promise<string[]>;
}

const LOOPBACK = ['127.0.0.1', '::1'] as const;
const NO_SUCH_ADDRESS: readonly unknown[] = ['ENODATA', 'ENOTFOUND'];
/**
 * Limit of addresses per family: several times as many as large services have. Each is checked on every attempt.
 */
const MAX_ADDRESSES = 64;

/**
 * Resolves the host of a URL to the addresses that an attempt may connect to, sorted. Every one must be allowed (contract, Webhooks 1).
 * @param limitMs time limit of DNS
 * @throws AttemptFailure `dns`, `blocked_address`, `own_origin`
 */
export const vet = async (
  url: URL,
  policy: DestinationPolicy,
  resolver: Resolver,
  limitMs: number,
): Promise<readonly string[]> => {
  const addresses = await addressesOf(url.hostname, policy, resolver, limitMs);
  if (!addresses.every((ip) => isAllowedAddress(ip, policy))) throw new AttemptFailure('blocked_address');
  if (addresses.some((ip) => isOwnAddress(ip, portOf(url), policy))) throw new AttemptFailure('own_origin');
  return addresses;
};

const addressesOf = async (
  host: string,
  policy: DestinationPolicy,
  resolver: Resolver,
  limitMs: number,
): Promise<readonly string[]> => {
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
  if (found.some(({ length }) => length > MAX_ADDRESSES)) throw new AttemptFailure('dns');
  const addresses = [...new Set(found.flat())].sort();
  if (addresses.length === 0) throw new AttemptFailure('dns');
  return addresses;
};

/** A family may have no addresses, but a missing DNS answer could have held a forbidden one. */
const orNone = (answer: Promise<string[]>): Promise<string[]> =>
  answer.catch((error: NodeJS.ErrnoException) => {
    if (NO_SUCH_ADDRESS.includes(error.code)) return [];
    throw new AttemptFailure('dns', { cause: error });
  });
