/** Which Host headers name this service, and what it serves under which. */

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];
/** A name is the same with the root's dot, and at any port. */
const DOT_BEFORE_PORT = /\.(?=$|:\d{0,5}$)/;
const PORT = /:\d*$/;
/** A name or an IPv4 address, or an IPv6 address in brackets, and a port; empty where the target has no host. */
const HOST = /^(?:[\w-]+(?:\.[\w-]+)*\.?|\[[\da-f:.]+\])?(?::\d*)?$/i;

/** Returns whether a Host header is well-formed (RFC 9110 section 7.2). */
export const isHost = (host: string): boolean => HOST.test(host);

/**
 * Whether a Host header is that of the service's own URL; where this is a loopback one, any name of the loopback will
 * do with its port.
 * @param otherHosts the service's other names in lower case, which are its own at any port
 */
export function createOwnHost(
  publicUrl: string,
  otherHosts: readonly string[] = [],
): (host: string) => boolean {
  const own = new URL(publicUrl);
  const names = LOOPBACK.includes(own.hostname) ? LOOPBACK : [own.hostname];
  const port = own.port === '' ? '' : `:${own.port}`;
  const hosts = new Set(names.map((name) => name + port));
  if (port === '') for (const name of names) hosts.add(`${name}:${own.protocol === 'https:' ? 443 : 80}`);
  const others = new Set(otherHosts);
  return (host) =>
    hosts.has(host) ||
    hosts.has(host.toLowerCase().replace(DOT_BEFORE_PORT, '')) ||
    (others.size > 0 && others.has(nameIn(host)));
}

/** The last label of an address begins with a digit, or is in brackets. */
const NAME_OF_LABELS = /\.[a-z][a-z\d-]*$/i;

/**
 * Returns whether a CNAME record can lead to the service's host: a name of at least two labels, not an address and not `localhost`.
 * @param host of the service's URL, without a port; an IPv6 address in brackets
 */
export const isCnameTarget = (host: string): boolean => NAME_OF_LABELS.test(host);

/** Returns whether a Host header names this machine itself. */
export const isLoopbackHost = (host: string): boolean => LOOPBACK.includes(nameIn(host));

/** Returns the name in a Host header in lower case, without the port and the root's dot. */
const nameIn = (host: string): string => host.toLowerCase().replace(PORT, '').replace(DOT_BEFORE_PORT, '');

export interface ServedHosts {
  isOwn(host: string): boolean;
  /** Returns whether a tracker's pixel works under a Host: the service's own, or an active domain of the tracker. */
  collectsOn(host: string, trackerId: string): boolean | Promise<boolean>;
  /** Whether a Host is an active custom domain, under which there is nothing but `/tracking/`. */
  isCustomDomain(host: string): boolean | Promise<boolean>;
}

/** `trackerOf`: whose active domain a host name is. A claim of one of the service's own names has no effect. */
export function createServedHosts(
  isOwn: (host: string) => boolean,
  trackerOf: (hostname: string) => string | null | Promise<string | null>,
): ServedHosts {
  const ownerOf = (host: string) => trackerOf(nameIn(host));
  const judged = (host: string, isSo: (trackerId: string | null) => boolean) => {
    const owner = ownerOf(host);
    return owner instanceof Promise ? owner.then(isSo) : isSo(owner);
  };
  return {
    isOwn,
    collectsOn: (host, trackerId) => isOwn(host) || judged(host, (owner) => owner === trackerId),
    isCustomDomain: (host) => !isOwn(host) && judged(host, (owner) => owner !== null),
  };
}
