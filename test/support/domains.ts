/** Custom domains over HTTP, as partners manage them, and their DNS. */
import type { LightMyRequestResponse } from 'fastify';
import type { Key, TestApi } from './api.ts';
import { type DnsAnswer, type DnsServer, startDnsServer } from './dns-server.ts';

/** The service's own name, as `startApi` has it. */
export const SERVICE_HOST = 'doorplate.test';

export interface TestDns extends DnsServer {
  /** As `DNS_SERVERS` takes it. */
  readonly address: string;
  /** Gives a name a CNAME or texts, or the server's failure; other names do not exist. */
  says(name: string, answer: DnsAnswer | { readonly TXT: readonly string[] }): void;
}

export const startTestDns = async (): Promise<TestDns> => {
  const answers = new Map<string, DnsAnswer | { readonly TXT: readonly string[] }>();
  const server = await startDnsServer((type, name) => {
    const answer = answers.get(name.toLowerCase()) ?? 'NXDOMAIN';
    if (typeof answer === 'object' && 'TXT' in answer) return type === 'TXT' ? answer.TXT : [];
    return type === 'TXT' && answer !== 'silence' ? [] : answer;
  });
  return {
    ...server,
    address: server.resolver.getServers()[0] ?? '',
    says: (name, answer) => answers.set(name, answer),
  };
};

export interface ShownDomain {
  readonly id: string;
  readonly status: string;
  readonly activated_at: string | null;
  readonly checked_at: string | null;
  readonly last_error: string | null;
  readonly snippet: string | null;
  readonly created_at: string;
}

export const domainsOf = (api: TestApi, key: Key, trackerId: string) => {
  const path = `/v1/trackers/${trackerId}/domains`;
  const read = async (url: string) => (await api.inject(key, { method: 'GET', url })).json();
  return {
    claim: (hostname: unknown): Promise<LightMyRequestResponse> =>
      api.inject(key, { method: 'POST', url: path, payload: { hostname } }),
    get: (id: string): Promise<LightMyRequestResponse> =>
      api.inject(key, { method: 'GET', url: `${path}/${id}` }),
    show: async (id: string): Promise<ShownDomain> => read(`${path}/${id}`),
    list: async (): Promise<readonly ShownDomain[]> => (await read(path)).domains,
    remove: (id: string): Promise<LightMyRequestResponse> =>
      api.inject(key, { method: 'DELETE', url: `${path}/${id}` }),
  };
};
