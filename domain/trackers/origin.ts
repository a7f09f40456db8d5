import { parseAddress } from '../kernel/address.ts';

/**
 * An origin on which a tracker's pixel may run (contract, Trackers 1): a serialised origin, `https://host[:port]`, `http://` for
 * localhost and loopback addresses only, or `https://*.host` for all subdomains.
 */
export type Origin = string;

const WILDCARD = 'https://*.';
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MAX_HOST_LENGTH = 253;
const MAX_ORIGIN_LENGTH = 'https://'.length + MAX_HOST_LENGTH + ':65535'.length;

/** Returns whether the text is an origin in exactly the form that browsers send. */
export const isOrigin = (text: string): boolean => {
  const wildcard = text.startsWith(WILDCARD);
  const plain = wildcard ? `https://${text.slice(WILDCARD.length)}` : text;
  // The parser takes quadratic time for long names with non-ASCII letters.
  if (plain.length > MAX_ORIGIN_LENGTH || !URL.canParse(plain)) return false;
  const url = new URL(plain);
  if (url.origin !== plain) return false;
  if (wildcard) return url.port === '' && isName(url.hostname) && url.hostname.includes('.');
  if (url.protocol === 'https:') return isHost(url.hostname);
  return url.protocol === 'http:' && isLoopback(url.hostname);
};

/** Returns whether a page's origin (a browser's `Origin` header) is one of the tracker's. */
export const originMatches = (origins: readonly Origin[], page: string): boolean =>
  origins.includes(page) ||
  // Parsed once: fifty wildcards may have the same ending.
  (page.startsWith('https://') && origins.some((origin) => isBelow(origin, page)) && isOrigin(page));

const isBelow = (origin: Origin, page: string): boolean => {
  // The suffix keeps its dot, so that neither the apex nor a name with the same ending matches.
  const suffix = origin.slice('https://*'.length);
  return origin.startsWith(WILDCARD) && page.length > `https://${suffix}`.length && page.endsWith(suffix);
};

/**
 * Returns all entries that would match a page's origin: the origin itself, and wildcards. It parses the origin once, because
 * any visitor may send one of a hundred labels.
 */
export const originsMatching = (page: string): readonly Origin[] => {
  if (!page.startsWith('https://') || !isOrigin(page)) return [page];
  const { host, port } = new URL(page);
  if (port !== '' || isIp(host)) return [page];
  const labels = host.split('.');
  return [page, ...labels.slice(1, -1).map((_, index) => `${WILDCARD}${labels.slice(index + 1).join('.')}`)];
};

const isHost = (host: string): boolean => isIp(host) || isName(host);

const isIp = (host: string): boolean => parseAddress(host.replace(/^\[(.*)\]$/, '$1')) !== null;

const isName = (host: string): boolean =>
  host.length <= MAX_HOST_LENGTH && !isIp(host) && host.split('.').every((label) => LABEL.test(label));

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '[::1]' || (host.startsWith('127.') && isIp(host));
