import { fileURLToPath } from 'node:url';
import { EventStoreDBClient } from '@eventstore/db-client';
import { describe, expect, it, test } from 'vitest';
import { type ConfigError, loadConfig } from '../../platform/config/config.ts';

const linesOf = (env: NodeJS.ProcessEnv): readonly string[] => {
  try {
    loadConfig(env);
    return [];
  } catch (error) {
    return (error as ConfigError).lines;
  }
};

describe('the configuration', () => {
  it('has a default for everything', () => {
    expect(loadConfig({})).toMatchObject({
      HOST: '127.0.0.1',
      PORT: 3000,
      OPS_PORT: 3001,
      DATA_DIR: '.doorplate',
      ENRICHMENT_PROVIDERS: ['directory'],
      ENRICHMENT_INTAKE_PER_MINUTE: 900,
      RETRY_BASE_SECONDS: 15,
      WEBHOOK_ALLOW_NETWORKS: [],
      WEBHOOK_ALLOW_HTTP: false,
      WEBHOOK_ALLOW_PORTS: [],
      unsafe: [],
    });
  });

  test.each([
    ['PORT', '70000'],
    ['PORT', '-1'],
    ['OPS_PORT', 'x'],
    ['UNIT_PRICE', '0.12'],
    ['UNIT_PRICE', '0.1234567 EUR'],
    ['UNIT_PRICE', '-1 EUR'],
    ['UNIT_PRICE', '1e3 EUR'],
    ['UNIT_PRICE', '0.12 eur'],
    ['UNIT_PRICE', '0.12 XQQ'],
    ['PUBLIC_URL', 'ftp://x'],
    ['PUBLIC_URL', 'doorplate.example'],
    ['PUBLIC_URL', 'https://d.example?x=1'],
    ['PUBLIC_URL', 'https://d.example/?'],
    ['PUBLIC_URL', 'https://d.example#top'],
    ['PUBLIC_URL', 'https://me:secret@d.example'],
    ['PUBLIC_URL', 'https://d.example/app'],
    ['PUBLIC_URL', 'https://d.example.'],
    ['PUBLIC_URL', 'https://d.example.:8443/'],
    ['PUBLIC_HOSTS', 'former.example,https://x.example'],
    ['DATABASE_URL', 'mysql://x'],
    ['DATABASE_URL', 'postgres://h:5433/d?host=/run&port=x'],
    ['EVENTSTORE_URL', 'http://x'],
    ['EVENTSTORE_URL', 'kurrent://x'],
    ['EVENTSTORE_URL', 'esdb://admin:one@two@h:2113'],
    ['EVENTSTORE_URL', 'esdb://admin:one?two@h:2113'],
    ['DATABASE_URL', 'postgres://me:one@two/three@h/d'],
    ['MASTER_KEY', 'c2hvcnQ='],
    ['MASTER_KEY_PREVIOUS', Buffer.alloc(32).toString('base64')],
    ['WEBHOOKS_PER_PARTNER', '0'],
    ['WEBHOOK_MANAGEMENT_PER_MINUTE', 'many'],
    ['TRUSTED_PROXIES', '10.0.0.0/8,nonsense'],
    ['ENRICHMENT_PROVIDERS', 'directory,oracle'],
    ['ENRICHMENT_PROVIDERS', ','],
    ['ENRICHMENT_HTTP_URL', 'https://vendor.example/'],
    ['ENRICHMENT_DIRECTORY', '/nowhere/at/all'],
    ['API_REQUESTS_PER_SECOND', '0'],
    ['LOOKUP_CAPACITY', '1.5'],
    ['RETRY_BASE_SECONDS', '0'],
    ['DNS_SERVERS', 'dns.example.com'],
    ['DNS_SERVERS', '127.0.0.1:0'],
    ['DNS_SERVERS', '1.2.3'],
    ['LOG_LEVEL', 'loud'],
    ['WEBHOOK_ALLOW_NETWORKS', '127.0.0.1'],
    ['WEBHOOK_ALLOW_HTTP', 'true'],
    ['WEBHOOK_ALLOW_PORTS', '8080,0'],
    ['WEBHOOK_ALLOW_PORTS', '65536'],
    ['WEBHOOK_EXTRA_CA_FILE', '/nowhere/at/all'],
  ])('reports %s when it is %j', (name, value) => {
    const lines = linesOf({ [name]: value });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(new RegExp(`^${name} `));
  });

  test.each([
    ['CAPTURES_PER_SECOND', '-1', '1 to 999999999'],
    ['CAPTURES_PER_SECOND', '0', '1 to 999999999'],
    ['CAPTURES_PER_SECOND', '1000000000', '1 to 999999999'],
    ['CAPTURES_PER_SECOND', '1e3', '1 to 999999999'],
    ['PORT', '65536', '0 to 65535'],
    ['WEBHOOK_PAYLOAD_BYTES_PER_PARTNER', '1000000000000000', '1 to 999999999999999'],
  ])('names the range of %s when it is %j', (name, value, range) => {
    expect(linesOf({ [name]: value })).toEqual([`${name} is not a whole number from ${range}`]);
  });

  test.each([
    ['https://d.example/', 'https://d.example'],
    ['HTTPS://D.example:443', 'https://d.example'],
    ['http://[::1]:3000', 'http://[::1]:3000'],
  ])('takes PUBLIC_URL %s as the origin %s', (url, origin) => {
    expect(loadConfig({ PUBLIC_URL: url }).PUBLIC_URL).toBe(origin);
  });

  test.each([
    ['kurrentdb://admin:changeit@a:2113?tls=false', 'esdb://admin:changeit@a:2113?tls=false'],
    ['eventstore+discover://kurrentdb.example:2113', 'esdb+discover://kurrentdb.example:2113'],
    ['kurrentdb+discover://a:2113,b:2113', 'esdb+discover://a:2113,b:2113'],
    ['eventstore://a', 'esdb://a'],
    ['esdb://eventstore:2113', 'esdb://eventstore:2113'],
  ])('hands EVENTSTORE_URL %s to the client as %s, which it accepts', (url, translated) => {
    const { EVENTSTORE_URL } = loadConfig({ EVENTSTORE_URL: url });
    expect(EVENTSTORE_URL).toBe(translated);
    expect(() => EventStoreDBClient.connectionString(EVENTSTORE_URL as string)).not.toThrow();
  });

  it('treats an empty variable as unset', () => {
    expect(loadConfig({ PORT: '', DATABASE_URL: '' }).PORT).toBe(3000);
  });

  it('reports the missing URL of an enabled provider', () => {
    expect(linesOf({ ENRICHMENT_PROVIDERS: 'http' })[0]).toMatch(/^ENRICHMENT_HTTP_URL /);
  });

  it('gives each named provider the variables that begin with its name', () => {
    const { providers } = loadConfig({
      ENRICHMENT_PROVIDERS: 'directory, ipinfo,maxmind-isp,own',
      IPINFO_TOKEN: 'secret',
      IPINFO_REQUESTS_PER_DAY: '1000',
      IPINFO_REQUESTS_PER_SECOND: '5',
      MAXMIND_ISP_FILE: 'package.json',
      OWN_MAP: 'package.json',
      OWN_URL: 'https://vendor.example/{ip}',
      OWN_TIMEOUT_MS: '100',
    });
    expect(providers).toMatchObject([
      { name: 'directory', kind: 'directory', file: null },
      {
        name: 'ipinfo',
        kind: 'api',
        token: 'secret',
        timeoutMs: 5_000,
        requestsPerSecond: 5,
        requestsPerDay: 1_000,
      },
      { name: 'maxmind-isp', kind: 'file', file: 'package.json', mapping: null },
      { name: 'own', kind: 'api', preset: 'package.json', timeoutMs: 100, requestsPerDay: null },
    ]);
  });

  test.each([
    [
      { ENRICHMENT_PROVIDERS: 'oracle' },
      /^ENRICHMENT_PROVIDERS names oracle, .*ipinfo.*ORACLE_FILE.*ORACLE_MAP/,
    ],
    [{ ENRICHMENT_PROVIDERS: 'directory,directory' }, /^ENRICHMENT_PROVIDERS names directory twice/],
    [{ ENRICHMENT_PROVIDERS: 'Maxmind' }, /^ENRICHMENT_PROVIDERS is not a comma list of names/],
    [
      { ENRICHMENT_PROVIDERS: 'database' },
      /^ENRICHMENT_PROVIDERS names database, but DATABASE_URL is a variable/,
    ],
    [
      { ENRICHMENT_PROVIDERS: 'a', A_FILE: '/nowhere' },
      /^A_FILE names a file that cannot be read: \/nowhere/,
    ],
    [
      { ENRICHMENT_PROVIDERS: 'a', A_FILE: 'package.json', A_TOKEN: 'x' },
      /^A_TOKEN is for an API, but A_FILE is set/,
    ],
    [
      { ENRICHMENT_PROVIDERS: 'ipinfo', IPINFO_URL: 'https://x.example/' },
      /^IPINFO_URL is not an http or https URL with {ip}/,
    ],
    [
      { ENRICHMENT_PROVIDERS: 'http', ENRICHMENT_HTTP_URL: 'ftp://x.example/{ip}' },
      /^ENRICHMENT_HTTP_URL is not an http or https URL with {ip}/,
    ],
    [
      { ENRICHMENT_PROVIDERS: 'ipinfo', IPINFO_REQUESTS_PER_DAY: '0' },
      /^IPINFO_REQUESTS_PER_DAY is not a whole number from 1 to 999999999$/,
    ],
  ])('refuses the providers of %j', (env, line) => {
    expect(linesOf(env)).toEqual([expect.stringMatching(line)]);
  });

  it('names the variables that an earlier version read', () => {
    expect(loadConfig({ MAX_CONNECTIONS_PER_ADDRESS: '500', HOME: '/root' }).gone).toEqual([
      'MAX_CONNECTIONS_PER_ADDRESS',
    ]);
    expect(loadConfig({ MAX_CONNECTIONS_PER_ADDRESS: '' }).gone).toEqual([]);
  });

  it('lists the settings for tests alone', () => {
    expect(loadConfig({ RETRY_BASE_SECONDS: '0.05' }).unsafe).toEqual(['RETRY_BASE_SECONDS']);
    const dns = loadConfig({ DNS_SERVERS: '127.0.0.1:5353, 9.9.9.9,::1,[2620:fe::fe]:53' });
    expect(dns.DNS_SERVERS).toEqual(['127.0.0.1:5353', '9.9.9.9', '::1', '[2620:fe::fe]:53']);
    expect(dns.unsafe).toEqual(['DNS_SERVERS']);
    const webhooks = {
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8',
      WEBHOOK_ALLOW_HTTP: '1',
      WEBHOOK_ALLOW_PORTS: '8080, 9000',
      WEBHOOK_EXTRA_CA_FILE: fileURLToPath(import.meta.url),
    };
    const config = loadConfig(webhooks);
    expect(config.unsafe).toEqual(Object.keys(webhooks));
    expect(config).toMatchObject({ WEBHOOK_ALLOW_HTTP: true, WEBHOOK_ALLOW_PORTS: [8080, 9000] });
  });
});
