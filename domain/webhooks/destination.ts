import ipaddr from 'ipaddr.js';
import { canonicalText, parseAddress, parsePublicAddress } from '../kernel/address.ts';
import { accept, type Result, refuse } from '../kernel/decider.ts';

/** Where webhooks may go. What it allows beyond public HTTPS on port 443 is for development and tests alone. */
export interface DestinationPolicy {
  readonly allowHttp: boolean;
  /** Beside the scheme's own. */
  readonly allowPorts: readonly number[];
  /** CIDR blocks beside what is public. */
  readonly allowNetworks: readonly string[];
  /** The service's own: no webhook goes there. */
  readonly ownOrigins: readonly string[];
}

/** Decisions, Webhooks: characters of an endpoint's URL. */
const LONGEST_URL = 2_048;
const LONGEST_NAME = 253;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const LOCALHOST = /(?:^|\.)localhost$/;
/**
 * Visible ASCII without `#` and `\`, with no `@` before the path. `new URL` alone would take tabs, `https:a.com`,
 * `%61`, full-width letters and an empty `#`.
 */
const SHAPE =
  /^https?:\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?(?:[/?][\x21\x22\x24-\x5b\x5d-\x7e]*)?$/i;

/**
 * Reads an endpoint's URL by its text alone (spec, WebhookCreate; decisions, Webhooks): what is not in plain form is
 * refused, not mended. Names are resolved and their addresses checked on each attempt (`processors/webhooks/vet.ts`).
 */
export const parseDestination = (
  text: string,
  policy: DestinationPolicy,
): Result<URL, 'invalid_webhook_url'> => {
  const host = text.length > LONGEST_URL ? undefined : SHAPE.exec(text)?.[1]?.toLowerCase();
  if (host === undefined || !URL.canParse(text)) return refuse('invalid_webhook_url');
  const url = new URL(text);
  const allowed =
    (url.protocol === 'https:' || policy.allowHttp) &&
    (url.port === '' || policy.allowPorts.includes(Number(url.port))) &&
    isAllowedHost(host, url, policy) &&
    !isOwnOrigin(url, policy);
  return allowed ? accept(url) : refuse('invalid_webhook_url');
};

/** Whether a webhook may go to this address: a public one, or one of the networks that the policy adds. */
export const isAllowedAddress = (ip: string, policy: DestinationPolicy): boolean =>
  parsePublicAddress(ip) !== null || isIn(prepared(policy).networks, ip);

/** Names of the machine itself (RFC 6761, 6.3): DNS is never asked for them. */
export const isLocalhost = (name: string): boolean => LOCALHOST.test(name);

/** The address that stands for the host in a URL; null for a name. */
export const addressInHost = (host: string): string | null => {
  const address = parseAddress(host.replace(/^\[(.*)\]$/, '$1'));
  return address === null ? null : canonicalText(address);
};

/** The port that a URL means, its scheme's own where it names none. */
export const portOf = (url: URL): number =>
  url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);

/**
 * Whether a URL is of the service's own host: on the same port, or on the scheme's own where the service goes by a
 * name, whatever port it listens on behind that.
 */
export const isOwnOrigin = (url: URL, policy: DestinationPolicy): boolean => {
  const machine = machineOf(url.hostname);
  return prepared(policy).own.some(
    (own) => machine === own.machine && (portOf(url) === own.port || (own.named && url.port === '')),
  );
};

/** Whether the service itself listens at an address that a name has led to. */
export const isOwnAddress = (ip: string, port: number, policy: DestinationPolicy): boolean => {
  const machine = machineOf(ip);
  return prepared(policy).own.some((own) => port === own.port && machine === own.machine);
};

const isAllowedHost = (host: string, url: URL, policy: DestinationPolicy): boolean => {
  const address = addressInHost(host);
  if (address !== null) return isAllowedAddress(address, policy);
  // Other spellings of IPv4 addresses look like names, and come out of the URL as addresses.
  if (host !== url.hostname) return false;
  if (isLocalhost(host)) return ['127.0.0.1', '::1'].some((ip) => isAllowedAddress(ip, policy));
  const labels = host.split('.');
  return host.length <= LONGEST_NAME && labels.length > 1 && labels.every((label) => LABEL.test(label));
};

type Block = ReturnType<typeof ipaddr.parseCIDR>;

const isIn = (blocks: readonly Block[], ip: string): boolean => {
  const address = blocks.length === 0 ? null : parseAddress(ip);
  return (
    address !== null &&
    blocks.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits))
  );
};

const LOOPBACK = ['127.0.0.0/8', '::1/128'].map((block) => ipaddr.parseCIDR(block));

/** One text for all spellings of a host, and for all names of the loopback. */
const machineOf = (host: string): string => {
  const address = addressInHost(host);
  const loopback = address === null ? isLocalhost(host) : isIn(LOOPBACK, address);
  return loopback ? 'localhost' : (address ?? host);
};

interface Prepared {
  readonly networks: readonly Block[];
  readonly own: readonly { readonly machine: string; readonly port: number; readonly named: boolean }[];
}

/** What texts of a policy say: it is asked several times on every attempt. */
const known = new WeakMap<DestinationPolicy, Prepared>();

const prepared = (policy: DestinationPolicy): Prepared => {
  const made = known.get(policy) ?? {
    networks: policy.allowNetworks.map((network) => ipaddr.parseCIDR(network)),
    own: policy.ownOrigins.map((origin) => {
      const url = new URL(origin);
      const named = addressInHost(url.hostname) === null && !isLocalhost(url.hostname);
      return { machine: machineOf(url.hostname), port: portOf(url), named };
    }),
  };
  known.set(policy, made);
  return made;
};
