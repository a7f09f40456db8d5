import ipaddr from 'ipaddr.js';
import { canonicalText, parseAddress, parsePublicAddress } from '../kernel/address.ts';
import { accept, type Result, refuse } from '../kernel/decider.ts';

/** Permitted destinations of webhooks. Anything beyond public HTTPS on port 443 is for development and tests only. */
export interface DestinationPolicy {
  readonly allowHttp: boolean;
  /** Ports that are allowed besides the scheme's default port. */
  readonly allowPorts: readonly number[];
  /** CIDR blocks that are allowed besides public addresses. */
  readonly allowNetworks: readonly string[];
  /** Whether these blocks alone are allowed, and no name is asked of DNS: nothing leaves the machine of a demo. */
  readonly onlyNetworks?: boolean;
  /** Origins of the service itself, which no webhook may be sent to. */
  readonly ownOrigins: readonly string[];
}

/** Characters of an endpoint's URL. */
const MAX_URL_LENGTH = 2_048;
const MAX_NAME_LENGTH = 253;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const LOCALHOST = /(?:^|\.)localhost$/;
/**
 * Visible ASCII without `#` and `\`, and without `@` before the path. `new URL` alone would accept tabs, `https:a.com`,
 * `%61`, full-width letters and an empty `#`.
 */
const SHAPE =
  /^https?:\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?(?:[/?][\x21\x22\x24-\x5b\x5d-\x7e]*)?$/i;

/**
 * Validates an endpoint's URL by its text alone (contract, Webhooks 1): unusual spellings are rejected,
 * not normalized. Each attempt resolves the name and checks its addresses (`processors/webhooks/delivery/addresses.ts`).
 */
export function parseDestination(
  text: string,
  policy: DestinationPolicy,
): Result<URL, 'invalid_webhook_url'> {
  const host = text.length > MAX_URL_LENGTH ? undefined : SHAPE.exec(text)?.[1]?.toLowerCase();
  if (host === undefined || !URL.canParse(text)) return refuse('invalid_webhook_url');
  const url = new URL(text);
  const allowed =
    (url.protocol === 'https:' || policy.allowHttp) &&
    (url.port === '' || policy.allowPorts.includes(Number(url.port))) &&
    isAllowedHost(host, url, policy) &&
    !isOwnOrigin(url, policy);
  return allowed ? accept(url) : refuse('invalid_webhook_url');
}

/** Returns whether a webhook may be sent to this address: public, or in one of the policy's networks. */
export const isAllowedAddress = (ip: string, policy: DestinationPolicy): boolean =>
  (!policy.onlyNetworks && parsePublicAddress(ip) !== null) || isIn(prepared(policy).networks, ip);

/** Returns whether the name means the machine itself (RFC 6761, 6.3); DNS is never asked for it. */
export const isLocalhost = (name: string): boolean => LOCALHOST.test(name);

/** Returns the canonical address of a URL's host; null for a name. */
export function addressInHost(host: string): string | null {
  const address = parseAddress(host.replace(/^\[(.*)\]$/, '$1'));
  return address === null ? null : canonicalText(address);
}

/** Returns the port of a URL, by default its scheme's. */
export const portOf = (url: URL): number =>
  url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);

/**
 * Returns whether a URL has the service's own host: on the same port, or on the scheme's default port if the service has a
 * name, because a proxy may listen there.
 */
export function isOwnOrigin(url: URL, policy: DestinationPolicy): boolean {
  const machine = machineOf(url.hostname);
  return prepared(policy).own.some(
    (own) => machine === own.machine && (portOf(url) === own.port || (own.named && url.port === '')),
  );
}

/** Returns whether the service itself listens at an address that a name resolved to. */
export function isOwnAddress(ip: string, port: number, policy: DestinationPolicy): boolean {
  const machine = machineOf(ip);
  return prepared(policy).own.some((own) => port === own.port && machine === own.machine);
}

function isAllowedHost(host: string, url: URL, policy: DestinationPolicy): boolean {
  const address = addressInHost(host);
  if (address !== null) return isAllowedAddress(address, policy);
  // Unusual spellings of IPv4 addresses look like names, but the URL parser converts them.
  if (host !== url.hostname) return false;
  if (isLocalhost(host)) return ['127.0.0.1', '::1'].some((ip) => isAllowedAddress(ip, policy));
  if (policy.onlyNetworks) return false;
  const labels = host.split('.');
  return host.length <= MAX_NAME_LENGTH && labels.length > 1 && labels.every((label) => LABEL.test(label));
}

type Block = ReturnType<typeof ipaddr.parseCIDR>;

function isIn(blocks: readonly Block[], ip: string): boolean {
  const address = blocks.length === 0 ? null : parseAddress(ip);
  return (
    address !== null &&
    blocks.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits))
  );
}

const LOOPBACK = ['127.0.0.0/8', '::1/128'].map((block) => ipaddr.parseCIDR(block));

/** Normalizes all spellings of a host, and all names of the loopback. */
function machineOf(host: string): string {
  const address = addressInHost(host);
  const loopback = address === null ? isLocalhost(host) : isIn(LOOPBACK, address);
  return loopback ? 'localhost' : (address ?? host);
}

interface Prepared {
  readonly networks: readonly Block[];
  readonly own: readonly { readonly machine: string; readonly port: number; readonly named: boolean }[];
}

/** Caches parsed policies, because each attempt uses them several times. */
const preparedPolicies = new WeakMap<DestinationPolicy, Prepared>();

function prepared(policy: DestinationPolicy): Prepared {
  const made = preparedPolicies.get(policy) ?? {
    networks: policy.allowNetworks.map((network) => ipaddr.parseCIDR(network)),
    own: policy.ownOrigins.map((origin) => {
      const url = new URL(origin);
      const named = addressInHost(url.hostname) === null && !isLocalhost(url.hostname);
      return { machine: machineOf(url.hostname), port: portOf(url), named };
    }),
  };
  preparedPolicies.set(policy, made);
  return made;
}
