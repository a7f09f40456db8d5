import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { isCnameTarget } from '../../http/server/own-host.ts';
import { checkCname } from '../../processors/domains/check-domains.ts';
import { type DnsAnswer, type DnsServer, startDnsServer } from '../support/dns-server.ts';

const TARGET = 'doorplate.example';
const chain = (length: number) =>
  Object.fromEntries(
    Array.from({ length }, (_, n): [string, string] => [
      `${length}-hop-${n}.example.com`,
      n === length - 1 ? TARGET : `${length}-hop-${n + 1}.example.com`,
    ]),
  );
const names: Readonly<Record<string, string>> = {
  'straight.example.com': TARGET,
  'loud.example.com': 'DoorPlate.EXAMPLE',
  'dotted.example.com': `${TARGET}.`,
  'elsewhere.example.com': 'other.example',
  'below.example.com': `evil.${TARGET}`,
  'beside.example.com': `${TARGET}.evil.example`,
  'nowhere.example.com': 'gone.example',
  'round.example.com': 'and-round.example.com',
  'and-round.example.com': 'Round.example.com',
  'self.example.com': 'self.example.com',
  'to-silence.example.com': 'silent.example.com',
  ...chain(8),
  ...chain(9),
};
const answers: Readonly<Record<string, DnsAnswer>> = {
  'plain.example.com': [],
  'other.example': [],
  'silent.example.com': 'silence',
  'broken.example.com': 'SERVFAIL',
  'refused.example.com': 'REFUSED',
};

let dns: DnsServer;
beforeAll(async () => {
  dns = await startDnsServer((type, asked) => {
    const name = asked.toLowerCase();
    const cname = names[name];
    if (type !== 'CNAME') return [];
    return cname === undefined ? (answers[name] ?? 'NXDOMAIN') : [cname];
  });
});
afterAll(() => dns.close());

describe('the CNAME check', () => {
  test.each([
    ['straight.example.com', null],
    ['loud.example.com', null],
    ['dotted.example.com', null],
    ['8-hop-0.example.com', null],
    ['9-hop-0.example.com', 'cname_too_long'],
    ['elsewhere.example.com', 'points_elsewhere'],
    ['below.example.com', 'points_elsewhere'],
    ['beside.example.com', 'points_elsewhere'],
    ['nowhere.example.com', 'points_elsewhere'],
    ['round.example.com', 'cname_loop'],
    ['self.example.com', 'cname_loop'],
    ['plain.example.com', 'no_cname'],
    ['unknown.example.com', 'no_such_name'],
    ['silent.example.com', 'dns_timeout'],
    ['to-silence.example.com', 'dns_timeout'],
    ['broken.example.com', 'dns_error'],
    ['refused.example.com', 'dns_error'],
  ])('%s: %s', async (name, expected) => {
    expect(await checkCname(dns.resolver, name, TARGET, AbortSignal.timeout(5_000))).toBe(expected);
  });

  it('reports a timeout when the check is aborted', async () => {
    const ended = new AbortController();
    const looked = checkCname(dns.resolver, 'silent.example.com', TARGET, ended.signal);
    ended.abort();
    expect(await looked).toBe('dns_timeout');
    expect(await checkCname(dns.resolver, 'straight.example.com', TARGET, ended.signal)).toBe('dns_timeout');
  });
});

test.each([
  ['doorplate.example.com', true],
  ['xn--trplatte-2za.xn--p1ai', true],
  ['127.0.0.1', false],
  ['8.8.8.8', false],
  ['[::1]', false],
  ['[2001:4860:4860::8888]', false],
  ['[::ffff:8.8.8.8]', false],
  ['localhost', false],
])('a CNAME can lead to a service at %s: %s', (host, can) => {
  expect(isCnameTarget(host)).toBe(can);
});
