import type { ResolverOptions } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { startDnsRelays } from './dns-relays.ts';

/**
 * Returns what makes DNS resolvers for names whose owners partners choose: no answer is long.
 * @param servers instead of the system's, unless empty
 */
export const createResolvers = (
  options: ResolverOptions,
  servers: readonly string[] = [],
): (() => Promise<Resolver>) => {
  let relays: Promise<string[]> | undefined;
  return async () => {
    relays ??= startDnsRelays(servers).catch((error: unknown) => {
      relays = undefined;
      throw error;
    });
    const resolver = new Resolver(options);
    resolver.setServers(await relays);
    return resolver;
  };
};
