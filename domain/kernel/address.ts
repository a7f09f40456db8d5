import ipaddr from 'ipaddr.js';

declare const addressBrand: unique symbol;

/** A public IP address in canonical text: IPv4 dotted, IPv6 by RFC 5952, mapped IPv4 as IPv4. */
export type PublicAddress = string & { readonly [addressBrand]: true };

/** More characters than this are no address. */
const MAX_LENGTH = 45;
const IPV4 = /^(?:(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])(?:\.(?!$)|$)){4}$/;
const GROUP = /^[0-9a-f]{1,4}$/i;

/**
 * IANA's special-purpose blocks that ipaddr.js classifies wholly or partly as unicast, and the public address that Azure
 * serves on each of its machines.
 */
const SPECIAL = (
  [
    '192.0.0.0/24',
    '192.31.196.0/24',
    '192.52.193.0/24',
    '192.88.99.0/24',
    '192.175.48.0/24',
    '168.63.129.16/32',
  ] as const
)
  .map((block) => ipaddr.IPv4.parseCIDR(block))
  .map(([base, bits]) => ({ base: base as ipaddr.IPv4 | ipaddr.IPv6, bits }))
  .concat(
    (['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'] as const)
      .map((block) => ipaddr.IPv6.parseCIDR(block))
      .map(([base, bits]) => ({ base, bits })),
  );
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Parses one public address in a usual spelling (contract, Lookup 2): four decimal octets, or RFC 4291 text
 * in any case. Returns null for other text, and for addresses that are not globally unicast: private, reserved,
 * special-purpose, tunnels.
 */
export function parsePublicAddress(text: string): PublicAddress | null {
  const address = text.length > MAX_LENGTH ? null : parseAddress(text);
  return address === null || !isPublic(address) ? null : (canonicalText(address) as PublicAddress);
}

/** Formats an address: IPv4 dotted, IPv6 by RFC 5952. */
export const canonicalText = (address: ipaddr.IPv4 | ipaddr.IPv6): string =>
  address.kind() === 'ipv4' ? address.toString() : (address as ipaddr.IPv6).toRFC5952String();

/** Parses any address in a usual spelling, public or not, mapped ones as IPv4. ipaddr.js alone accepts too much. */
export function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  if (IPV4.test(text)) return ipaddr.IPv4.parse(text);
  const groups = ipv6Groups(text);
  if (groups === null) return null;
  const address = new ipaddr.IPv6(groups);
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/** Returns the IPv4 address that an address of the well-known prefix of NAT64 (RFC 6052) embeds; null for any other text. */
export function embeddedIpv4(text: string): string | null {
  const address = parseAddress(text);
  if (address === null || address.kind() === 'ipv4' || !address.match(NAT64)) return null;
  return address.toByteArray().slice(-4).join('.');
}

/** Returns whether the address is public in the sense of contract, Lookup 3. */
const isPublic = (address: ipaddr.IPv4 | ipaddr.IPv6): boolean =>
  address.range() === 'unicast' &&
  (address.kind() === 'ipv4' || address.match(GLOBAL_UNICAST)) &&
  !SPECIAL.some(({ base, bits }) => base.kind() === address.kind() && address.match(base, bits));

/** Parses the eight groups of RFC 4291 text, including an IPv4 tail; null if invalid. */
function ipv6Groups(text: string): number[] | null {
  const hex = withoutIpv4Tail(text);
  if (hex === null) return null;
  const halves = hex.split('::');
  if (halves.length > 2) return null;
  const [head = [], tail = []] = halves.map((half) => (half === '' ? [] : half.split(':')));
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const groups = [...head, ...Array<string>(missing).fill('0'), ...tail];
  return groups.every((group) => GROUP.test(group))
    ? groups.map((group) => Number.parseInt(group, 16))
    : null;
}

function withoutIpv4Tail(text: string): string | null {
  if (!text.includes('.')) return text;
  const start = text.lastIndexOf(':') + 1;
  const tail = text.slice(start);
  if (start === 0 || !IPV4.test(tail)) return null;
  const [a = 0, b = 0, c = 0, d = 0] = tail.split('.').map(Number);
  return `${text.slice(0, start)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}
