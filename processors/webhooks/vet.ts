import {
  addressInHost,
  type DestinationPolicy,
  isAllowedAddress,
  isLocalhost,
  isOwnAddress,
  portOf,
} from '../../domain/webhooks/destination.ts';
import { AttemptFailure } from './attempt-failure.ts';

/** What is needed of `dns.promises.Resolver`: it asks DNS servers alone, never `/etc/hosts`. */
export interface Resolver {
  resolve4(name: string): Promise<string[]>;
  resolve6(name: string): Promise<string[]>;
}

const LOOPBACK = ['127.0.0.1', '::1'] as const;
const NO_SUCH_ADDRESS: readonly unknown[] = ['ENODATA', 'ENOTFOUND'];

/**
 * The addresses that an attempt may connect to, sorted: all that the host has now, every one of them allowed (spec,
 * Delivery behaviour).
 * @param limitMs how long DNS may take
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
  // The loopback is two addresses, of which development may have allowed one.
  if (isLocalhost(host)) return LOOPBACK.filter((ip) => isAllowedAddress(ip, policy));
  const found = await within(
    limitMs,
    Promise.all([orNone(resolver.resolve4(host)), orNone(resolver.resolve6(host))]),
  );
  const addresses = [...new Set(found.flat())].sort();
  if (addresses.length === 0) throw new AttemptFailure('dns');
  return addresses;
};

/** A family may have no addresses; where its answer is missing, it might have had any. */
const orNone = (answer: Promise<string[]>): Promise<string[]> =>
  answer.catch((error: NodeJS.ErrnoException) => {
    if (NO_SUCH_ADDRESS.includes(error.code)) return [];
    throw new AttemptFailure('dns', { cause: error });
  });

const within = async <T>(limitMs: number, work: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new AttemptFailure('dns')), limitMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
};
