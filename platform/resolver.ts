import { Resolver } from 'node:dns/promises';

/** Makes a DNS resolver with a short time limit. `servers`: instead of the system's, unless empty. */
export const newResolver = (servers: readonly string[]): Resolver => {
  const resolver = new Resolver({ timeout: 1_500, tries: 2 });
  if (servers.length > 0) resolver.setServers(servers);
  return resolver;
};
