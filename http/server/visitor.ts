/** The visitor's address: a browser's behind the proxies that the operator trusts (contract, Pixel 5). */
import ipaddr from 'ipaddr.js';
import { canonicalText, parseAddress } from '../../domain/kernel/address.ts';
import type { ApiRequest } from '../contract/route.ts';

type Address = ReturnType<typeof parseAddress>;

/** What a peer without an address counts as: a socket that is gone by now. Not public. */
const UNKNOWN_ADDRESS = '::';

/**
 * The address of the client in canonical text: the peer's, or where the peer is a trusted proxy the rightmost of
 * `X-Forwarded-For` that is none. Only what trusted proxies wrote is believed: an entry that is no address ends the
 * walk at the one after it.
 * @param trustedProxies CIDR blocks
 */
export function createVisitorAddress(
  trustedProxies: readonly string[],
): (request: Pick<ApiRequest, 'peer' | 'header'>) => string {
  const isTrusted = membershipIn(trustedProxies);

  const clientOf = (request: Pick<ApiRequest, 'peer' | 'header'>): string => {
    const peer = parsePeer(request.peer);
    if (peer === null) return UNKNOWN_ADDRESS;
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

  // A request's rate asks for it, and then the visit.
  const known = new WeakMap<object, string>();
  return (request) => {
    const client = known.get(request) ?? clientOf(request);
    known.set(request, client);
    return client;
  };
}

/** Returns a function that tells whether a peer is a trusted proxy. */
export function createIsTrusted(trustedProxies: readonly string[]): (address: string) => boolean {
  const isTrusted = membershipIn(trustedProxies);
  return (address) => {
    const peer = parsePeer(address);
    return peer !== null && isTrusted(peer);
  };
}

/** An interface's name, where the peer is on the same link, is no part of the address. */
const parsePeer = (address: string): Address => parseAddress(address.split('%', 1)[0] ?? '');

function membershipIn(cidrs: readonly string[]): (address: ipaddr.IPv4 | ipaddr.IPv6) => boolean {
  const blocks = cidrs.map((block) => ipaddr.parseCIDR(block));
  return (address) =>
    blocks.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits));
}

/** Some proxies add a port, and then IPv6 stands in brackets: `1.2.3.4:5678`, `[2001:db8::1]:5678`. */
function parseEntry(entry: string): Address {
  const bare = /^\[(.+)\](?::\d{1,5})?$/.exec(entry)?.[1] ?? /^([^:]+):\d{1,5}$/.exec(entry)?.[1] ?? entry;
  return parseAddress(bare);
}

/** Returns the network that counts as one visitor: an IPv4 address, or an IPv6 /64, because a host has 2^64 addresses. */
export function networkOf(address: string): string {
  const parsed = ipaddr.parse(address);
  if (parsed.kind() === 'ipv4') return address;
  const parts = (parsed as ipaddr.IPv6).parts.slice(0, 4).map((part) => part.toString(16));
  return `${parts.join(':')}::/64`;
}
