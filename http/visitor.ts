/** Who visits: the address of a browser behind the proxies that the operator trusts (decisions, "Running it"). */
import ipaddr from 'ipaddr.js';
import { canonicalText, parseAddress } from '../domain/kernel/address.ts';
import type { ApiRequest } from './route.ts';

type Address = ReturnType<typeof parseAddress>;

/** What a peer without an address counts as: a socket that is gone by now. Not public. */
const NOBODY = '::';

/**
 * The address of the client in canonical text: the peer's, or where the peer is a trusted proxy the rightmost of
 * `X-Forwarded-For` that is none. Only what trusted proxies wrote is believed: an entry that is no address ends the
 * walk at the one after it.
 * @param trustedProxies CIDR blocks
 */
export const createVisitorAddress = (
  trustedProxies: readonly string[],
): ((request: Pick<ApiRequest, 'peer' | 'header'>) => string) => {
  // A request's rate asks for it, and then the visit.
  const known = new WeakMap<object, string>();
  const blocks = trustedProxies.map((block) => ipaddr.parseCIDR(block));
  const isTrusted = (address: ipaddr.IPv4 | ipaddr.IPv6): boolean =>
    blocks.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits));

  const clientOf = (request: Pick<ApiRequest, 'peer' | 'header'>): string => {
    // An interface's name, where the peer is on the same link, is no part of the address.
    const peer = parseAddress(request.peer.split('%', 1)[0] ?? '');
    if (peer === null) return NOBODY;
    const forwarded = request.header('x-forwarded-for');
    if (forwarded === undefined || !isTrusted(peer)) return canonicalText(peer);
    let client = peer;
    for (const entry of forwarded.split(',').reverse()) {
      const address = parseEntry(entry.trim());
      if (address === null) break;
      client = address;
      if (!isTrusted(address)) break;
    }
    return canonicalText(client);
  };

  return (request) => {
    const address = known.get(request) ?? clientOf(request);
    known.set(request, address);
    return address;
  };
};

/** Some proxies add a port, and then IPv6 stands in brackets: `1.2.3.4:5678`, `[2001:db8::1]:5678`. */
const parseEntry = (entry: string): Address => {
  const bare = /^\[(.+)\](?::\d{1,5})?$/.exec(entry)?.[1] ?? /^([^:]+):\d{1,5}$/.exec(entry)?.[1] ?? entry;
  return parseAddress(bare);
};

/** What stands for whoever is at an address in canonical text: an IPv6 host has 2^64 of its own, so their network. */
export const networkOf = (address: string): string => {
  const parsed = ipaddr.parse(address);
  if (parsed.kind() === 'ipv4') return address;
  return `${(parsed as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
};
