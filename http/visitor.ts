/** Who visits: the address of a browser behind the proxies that the operator trusts (contract, Pixel 5). */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import { canonicalText, parseAddress } from '../domain/kernel/address.ts';
import type { CallerNetworks } from './held-by-callers.ts';
import type { ApiRequest } from './route.ts';

type Address = ReturnType<typeof parseAddress>;

/** What a peer without an address counts as: a socket that is gone by now. Not public. */
const UNKNOWN_ADDRESS = '::';

/** More proxies than stand behind each other. A header of 16 KB has room for 4,000, which take 12 ms. */
const MAX_PROXIES = 32;

/**
 * The address of the client in canonical text: the peer's, or where the peer is a trusted proxy the rightmost of
 * `X-Forwarded-For` that is none. Only what trusted proxies wrote is believed: an entry that is no address ends the
 * walk at the one after it, and so do 32 proxies.
 * @param trustedProxies CIDR blocks
 */
export const createVisitorAddress = (
  trustedProxies: readonly string[],
): ((request: Pick<ApiRequest, 'peer' | 'header'>) => string) => {
  const isTrusted = membershipIn(trustedProxies);

  const clientOf = (request: Pick<ApiRequest, 'peer' | 'header'>): string => {
    // An interface's name, where the peer is on the same link, is no part of the address.
    const peer = parseAddress(request.peer.split('%', 1)[0] ?? '');
    if (peer === null) return UNKNOWN_ADDRESS;
    const forwarded = request.header('x-forwarded-for');
    if (forwarded === undefined || !isTrusted(peer)) return canonicalText(peer);
    let client = peer;
    for (const entry of fromTheRight(forwarded)) {
      const address = parseEntry(entry.trim());
      if (address === null) break;
      client = address;
      if (!isTrusted(address)) break;
    }
    return canonicalText(client);
  };

  // A request's rate asks for it, and then the visit.
  return onceFor(clientOf);
};

/** Remembers what is made of an object, for as long as the object is there. */
const onceFor = <Key extends object, Made>(make: (key: Key) => Made): ((key: Key) => Made) => {
  const known = new WeakMap<Key, { readonly made: Made }>();
  return (key) => {
    const before = known.get(key);
    if (before !== undefined) return before.made;
    const made = make(key);
    known.set(key, { made });
    return made;
  };
};

/** Yields the last entries of a list, without going through the others. */
function* fromTheRight(list: string): Generator<string> {
  for (let end = list.length, left = MAX_PROXIES; end >= 0 && left > 0; left -= 1) {
    const comma = end === 0 ? -1 : list.lastIndexOf(',', end - 1);
    yield list.slice(comma + 1, end);
    end = comma;
  }
}

const membershipIn = (cidrs: readonly string[]): ((address: ipaddr.IPv4 | ipaddr.IPv6) => boolean) => {
  const blocks = cidrs.map((block) => ipaddr.parseCIDR(block));
  return (address) =>
    blocks.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits));
};

/** Returns the caller at a peer's address; null: not counted, since all callers come through a trusted proxy. */
export const createCallerAt = (
  trustedProxies: readonly string[],
): ((address: string) => CallerNetworks | null) => {
  const isTrusted = membershipIn(trustedProxies);
  return (address) => {
    const peer = parseAddress(address.split('%', 1)[0] ?? '');
    if (peer === null) return callerOfAddress(UNKNOWN_ADDRESS);
    return isTrusted(peer) ? null : callerOfAddress(canonicalText(peer));
  };
};

/** Returns the caller of a request: as of its client's connection, also behind a trusted proxy. */
export const createCallerOf = (
  trustedProxies: readonly string[],
): ((request: IncomingMessage) => CallerNetworks | null) => {
  const clientOf = createVisitorAddress(trustedProxies);
  const callerAt = createCallerAt(trustedProxies);
  const ofPeer = onceFor((socket: Socket) => callerAt(socket.remoteAddress ?? ''));
  // Asked for when a request waits for its turn, and again when it is served.
  const ofForwarded = onceFor(({ socket, headers }: IncomingMessage) =>
    callerAt(
      clientOf({
        peer: socket.remoteAddress ?? '',
        header: () => String(headers['x-forwarded-for']),
      }),
    ),
  );
  return (request) =>
    request.headers['x-forwarded-for'] === undefined ? ofPeer(request.socket) : ofForwarded(request);
};

/** Some proxies add a port, and then IPv6 stands in brackets: `1.2.3.4:5678`, `[2001:db8::1]:5678`. */
const parseEntry = (entry: string): Address => {
  const bare = /^\[(.+)\](?::\d{1,5})?$/.exec(entry)?.[1] ?? /^([^:]+):\d{1,5}$/.exec(entry)?.[1] ?? entry;
  return parseAddress(bare);
};

/** Returns the network that counts as one visitor: an IPv4 address, or an IPv6 /64, because a host has 2^64 addresses. */
export const networkOf = (address: string): string => {
  const parsed = ipaddr.parse(address);
  return parsed.kind() === 'ipv4' ? address : prefixOf(parsed as ipaddr.IPv6, 4);
};

/** Returns the block of the first `count` of the eight parts of an address. */
const prefixOf = ({ parts }: ipaddr.IPv6, count: number): string =>
  `${parts
    .slice(0, count)
    .map((part) => part.toString(16))
    .join(':')}::/${16 * count}`;

/** Returns the caller at a canonical address. */
export const callerOfAddress = (address: string): CallerNetworks => {
  const parsed = ipaddr.parse(address);
  const network =
    parsed.kind() === 'ipv4'
      ? `${address.slice(0, address.lastIndexOf('.'))}.0/24`
      : prefixOf(parsed as ipaddr.IPv6, 3);
  return { address: networkOf(address), network };
};
