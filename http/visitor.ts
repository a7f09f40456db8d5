/** Who visits: the address of a browser behind the proxies that the operator trusts (contract, Pixel 5). */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import { canonicalText, parseAddress } from '../domain/kernel/address.ts';
import type { ApiRequest } from './route.ts';

type Address = ReturnType<typeof parseAddress>;

/** What a peer without an address counts as: a socket that is gone by now. Not public. */
const UNKNOWN_ADDRESS = '::';

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
  const isTrusted = membershipIn(trustedProxies);

  const clientOf = (request: Pick<ApiRequest, 'peer' | 'header'>): string => {
    // An interface's name, where the peer is on the same link, is no part of the address.
    const peer = parseAddress(request.peer.split('%', 1)[0] ?? '');
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

  return (request) => {
    const address = known.get(request) ?? clientOf(request);
    known.set(request, address);
    return address;
  };
};

const membershipIn = (cidrs: readonly string[]): ((address: ipaddr.IPv4 | ipaddr.IPv6) => boolean) => {
  const blocks = cidrs.map((block) => ipaddr.parseCIDR(block));
  return (address) =>
    blocks.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits));
};

/**
 * Returns what a peer's connections are counted as: its IPv4 address or IPv6 /64; null: not counted, since all callers come
 * through a trusted proxy.
 */
export const createConnectionGroup = (
  trustedProxies: readonly string[],
): ((address: string) => string | null) => {
  const isTrusted = membershipIn(trustedProxies);
  return (address) => {
    const peer = parseAddress(address.split('%', 1)[0] ?? '');
    if (peer === null) return UNKNOWN_ADDRESS;
    return isTrusted(peer) ? null : networkOf(canonicalText(peer));
  };
};

/** What a request is counted as: what its client's connection would be, also behind a trusted proxy. */
export const createRequestGroup = (
  trustedProxies: readonly string[],
): ((request: IncomingMessage) => string | null) => {
  const clientOf = createVisitorAddress(trustedProxies);
  const groupOf = createConnectionGroup(trustedProxies);
  const ofPeers = new WeakMap<Socket, string | null>();
  const ofPeer = (socket: Socket): string | null => {
    const known = ofPeers.get(socket);
    if (known !== undefined) return known;
    const group = groupOf(socket.remoteAddress ?? '');
    ofPeers.set(socket, group);
    return group;
  };
  return ({ socket, headers }) => {
    const forwarded = headers['x-forwarded-for'];
    if (forwarded === undefined) return ofPeer(socket);
    return groupOf(clientOf({ peer: socket.remoteAddress ?? '', header: () => String(forwarded) }));
  };
};

/** Some proxies add a port, and then IPv6 stands in brackets: `1.2.3.4:5678`, `[2001:db8::1]:5678`. */
const parseEntry = (entry: string): Address => {
  const bare = /^\[(.+)\](?::\d{1,5})?$/.exec(entry)?.[1] ?? /^([^:]+):\d{1,5}$/.exec(entry)?.[1] ?? entry;
  return parseAddress(bare);
};

/** Returns the network that counts as one visitor: an IPv4 address, or an IPv6 /64, because a host has 2^64 addresses. */
export const networkOf = (address: string): string => {
  const parsed = ipaddr.parse(address);
  if (parsed.kind() === 'ipv4') return address;
  return `${(parsed as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
};
