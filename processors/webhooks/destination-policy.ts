import { networkInterfaces } from 'node:os';
import type { DestinationPolicy } from '../../domain/webhooks/destination.ts';
import type { Config } from '../../platform/config.ts';

const EVERY_ADDRESS: readonly string[] = ['0.0.0.0', '::'];

/** Creates the operator's policy of webhook destinations, which excludes the service's own URL and listeners. */
export const destinationPolicy = (
  config: Pick<
    Config,
    | 'HOST'
    | 'PORT'
    | 'PUBLIC_URL'
    | 'PUBLIC_HOSTS'
    | 'WEBHOOK_ALLOW_HTTP'
    | 'WEBHOOK_ALLOW_NETWORKS'
    | 'WEBHOOK_ALLOW_PORTS'
  >,
): DestinationPolicy => ({
  allowHttp: config.WEBHOOK_ALLOW_HTTP,
  allowPorts: config.WEBHOOK_ALLOW_PORTS,
  allowNetworks: config.WEBHOOK_ALLOW_NETWORKS,
  ownOrigins: [
    ...(config.PUBLIC_URL === undefined ? [] : [config.PUBLIC_URL]),
    ...config.PUBLIC_HOSTS.map((host) => `https://${host}`),
    ...listeningHosts(config.HOST).map((host) => `http://${host}:${config.PORT}`),
  ],
});

/** Returns all addresses of the machine if the service listens on all of them. */
const listeningHosts = (host: string): string[] => {
  const addresses = EVERY_ADDRESS.includes(host)
    ? Object.values(networkInterfaces()).flatMap((some) => some?.map(({ address }) => address) ?? [])
    : [host];
  // An address with a zone cannot be a URL's host.
  return addresses
    .filter((address) => !address.includes('%'))
    .map((address) => (address.includes(':') ? `[${address}]` : address));
};
