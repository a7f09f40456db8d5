import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { destinationPolicy } from '../../bin/destination-policy.ts';
import { loadConfig } from '../../platform/config.ts';

describe('where webhooks may go', () => {
  it('is public HTTPS on its own port, and never where the service is', () => {
    expect(destinationPolicy(loadConfig({ PUBLIC_URL: 'https://doorplate.example/' }))).toEqual({
      allowHttp: false,
      allowPorts: [],
      allowNetworks: [],
      ownOrigins: ['https://doorplate.example', 'http://127.0.0.1:3000'],
    });
  });

  it('is wider for development', () => {
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

  it('is none of the addresses of a machine that the service listens at all of', () => {
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
