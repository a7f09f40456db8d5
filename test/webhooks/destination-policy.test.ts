import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../platform/config.ts';
import { destinationPolicy } from '../../processors/webhooks/delivery/addresses.ts';

describe('the destination policy of webhooks', () => {
  it('allows public HTTPS on its own port, and never the service itself', () => {
    const env = { PUBLIC_URL: 'https://doorplate.example/', PUBLIC_HOSTS: 'former.example' };
    expect(destinationPolicy(loadConfig(env))).toEqual({
      allowHttp: false,
      allowPorts: [],
      allowNetworks: [],
      ownOrigins: ['https://doorplate.example', 'https://former.example', 'http://127.0.0.1:3000'],
    });
  });

  it('allows more for development', () => {
    const env = {
      WEBHOOK_ALLOW_HTTP: '1',
      WEBHOOK_ALLOW_PORTS: '9000,9001',
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8,::1/128',
    };
    expect(destinationPolicy(loadConfig(env))).toMatchObject({
      allowHttp: true,
      allowPorts: [9000, 9001],
      allowNetworks: ['127.0.0.0/8', '::1/128'],
    });
  });

  it('refuses every address of a machine on which the service listens on all addresses', () => {
    for (const HOST of ['0.0.0.0', '::']) {
      const { ownOrigins } = destinationPolicy(loadConfig({ HOST, PORT: '8080' }));
      expect(ownOrigins).toContain('http://127.0.0.1:8080');
      expect(ownOrigins.every((origin) => URL.canParse(origin))).toBe(true);
      const addresses = Object.values(networkInterfaces()).flatMap((some) => some ?? []);
      expect(ownOrigins).toHaveLength(addresses.filter(({ address }) => !address.includes('%')).length);
    }
    expect(destinationPolicy(loadConfig({ HOST: '::1' })).ownOrigins).toEqual(['http://[::1]:3000']);
  });
});
