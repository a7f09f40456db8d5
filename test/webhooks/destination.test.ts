import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { describe, expect, it, test } from 'vitest';
import {
  type DestinationPolicy,
  isAllowedAddress,
  isOwnAddress,
  parseDestination,
} from '../../domain/webhooks/destination.ts';

const PUBLIC_ONLY: DestinationPolicy = {
  allowHttp: false,
  allowPorts: [],
  allowNetworks: [],
  ownOrigins: ['https://doorplate.example', 'http://127.0.0.1:3000'],
};
const LOOPBACK: DestinationPolicy = {
  ...PUBLIC_ONLY,
  allowHttp: true,
  allowPorts: [8080, 3000],
  allowNetworks: ['127.0.0.0/8', '::1/128'],
};

const accepts = (url: string, policy = PUBLIC_ONLY): boolean => parseDestination(url, policy).ok;

/** IANA's special-purpose registries, multicast and unallocated blocks, as CIDR. */
const SPECIAL_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const;
const SPECIAL_IPV6 = [
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '100:0:0:1::/64',
  '200::/7',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
  '4000::/2',
  '5f00::/16',
  '8000::/1',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
] as const;
const PUBLIC_IPV4 = ['1.1.1.0/24', '8.8.8.0/24', '93.184.216.0/24', '185.0.0.0/16', '223.255.255.0/24'];
const PUBLIC_IPV6 = ['2001:4860::/32', '2400::/12', '2606:4700::/32', '2a00::/12'];

type Bytes = readonly number[];

/** Any address of the block, as bytes. */
const inBlock = (cidr: string): fc.Arbitrary<Bytes> => {
  const [base, bits] = ipaddr.parseCIDR(cidr);
  const bytes = base.toByteArray();
  const free = (index: number) => Math.min(8, Math.max(0, (index + 1) * 8 - bits));
  return fc.tuple(
    ...bytes.map((byte, index) => fc.nat({ max: 2 ** free(index) - 1 }).map((low) => byte | low)),
  );
};
const inBlocks = (blocks: readonly string[]) => fc.oneof(...blocks.map(inBlock));

const dotted = (bytes: Bytes) => bytes.join('.');
const hex16 = (high = 0, low = 0) => (high * 256 + low).toString(16);
const groupsOf = (bytes: Bytes) =>
  Array.from({ length: 8 }, (_, index) => hex16(bytes[index * 2], bytes[index * 2 + 1]));
const full = (bytes: Bytes) =>
  groupsOf(bytes)
    .map((group) => group.padStart(4, '0'))
    .join(':');

/** Spellings of an IPv4 address within IPv6 that lead to it. */
const MAPPED: readonly ((bytes: Bytes) => string)[] = [
  (bytes) => `::ffff:${dotted(bytes)}`,
  (bytes) => `0:0:0:0:0:FFFF:${dotted(bytes)}`,
  ([a, b, c, d]) => `::ffff:${hex16(a, b)}:${hex16(c, d)}`,
  ([a, b, c, d]) => `0000:0000:0000:0000:0000:ffff:${hex16(a, b)}:${hex16(c, d)}`,
];
/** Spellings that lead to it through a gateway or a tunnel: never allowed, whatever the IPv4 address. */
const TUNNELS: readonly ((bytes: Bytes) => string)[] = [
  (bytes) => `::${dotted(bytes)}`,
  (bytes) => `64:ff9b::${dotted(bytes)}`,
  (bytes) => `64:ff9b:1::${dotted(bytes)}`,
  ([a, b, c, d]) => `2002:${hex16(a, b)}:${hex16(c, d)}::1`,
  ([a = 0, b = 0, c = 0, d = 0]) =>
    `2001:0:4136:e378:8000:63bf:${hex16(255 - a, 255 - b)}:${hex16(255 - c, 255 - d)}`,
];
/** What `inet_aton` and `new URL` accept as an IPv4 address. */
const ODD_IPV4: readonly ((bytes: Bytes) => string)[] = [
  ([a = 0, b = 0, c = 0, d = 0]) => String(((a * 256 + b) * 256 + c) * 256 + d),
  ([a = 0, b = 0, c = 0, d = 0]) => `0x${(((a * 256 + b) * 256 + c) * 256 + d).toString(16)}`,
  (bytes) => bytes.map((byte) => `0${byte.toString(8)}`).join('.'),
  (bytes) => bytes.map((byte) => `0x${byte.toString(16)}`).join('.'),
  ([a, b, c = 0, d = 0]) => `${a}.${b}.${c * 256 + d}`,
  ([a, b = 0, c = 0, d = 0]) => `${a}.${(b * 256 + c) * 256 + d}`,
  (bytes) => `${dotted(bytes)}.`,
  (bytes) => dotted(bytes).replace('.', '%2e'),
  (bytes) => dotted(bytes).replace('.', '。'),
  (bytes) => dotted(bytes).replaceAll(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit))),
];
const IPV6_SPELLINGS: readonly ((bytes: Bytes) => string)[] = [
  full,
  (bytes) => full(bytes).toUpperCase(),
  (bytes) => groupsOf(bytes).join(':'),
  (bytes) => new ipaddr.IPv6([...bytes]).toRFC5952String(),
  (bytes) => `${groupsOf(bytes).slice(0, 6).join(':')}:${dotted(bytes.slice(12))}`,
];
const spelled = (spellings: readonly ((bytes: Bytes) => string)[], bytes: fc.Arbitrary<Bytes>) =>
  fc.tuple(fc.constantFrom(...spellings), bytes).map(([spell, some]) => spell(some));

const bracketed = (ip: string) => (ip.includes(':') ? `[${ip}]` : ip);
const RUNS = { numRuns: 500 };

describe('an address for webhooks', () => {
  it('is not in a special-purpose block, as itself or mapped', () => {
    const ipv4 = inBlocks(SPECIAL_IPV4);
    const special = fc.oneof(
      ipv4.map(dotted),
      spelled(MAPPED, ipv4),
      spelled(IPV6_SPELLINGS, inBlocks(SPECIAL_IPV6)),
    );
    fc.assert(
      fc.property(special, (ip) => {
        expect(isAllowedAddress(ip, PUBLIC_ONLY)).toBe(false);
        expect(accepts(`https://${bracketed(ip)}/hook`)).toBe(false);
      }),
      RUNS,
    );
  });

  it('is not behind a gateway or tunnel, whatever the embedded address', () => {
    const any = fc.oneof(inBlocks(SPECIAL_IPV4), inBlocks(PUBLIC_IPV4));
    fc.assert(
      fc.property(spelled(TUNNELS, any), (ip) => {
        expect(isAllowedAddress(ip, PUBLIC_ONLY)).toBe(false);
        expect(accepts(`https://[${ip}]/`)).toBe(false);
      }),
      RUNS,
    );
  });

  it('may be a public one in each usual spelling', () => {
    const ipv4 = inBlocks(PUBLIC_IPV4);
    const open = fc.oneof(
      ipv4.map(dotted),
      spelled(MAPPED, ipv4),
      spelled(IPV6_SPELLINGS, inBlocks(PUBLIC_IPV6)),
    );
    fc.assert(
      fc.property(open, (ip) => {
        expect(isAllowedAddress(ip, PUBLIC_ONLY)).toBe(true);
        expect(accepts(`https://${bracketed(ip)}/hook`)).toBe(true);
      }),
      RUNS,
    );
  });

  it('may not have an unusual spelling, public or not, allowed or not', () => {
    const any = fc.oneof(inBlocks(SPECIAL_IPV4), inBlocks(PUBLIC_IPV4), inBlock('127.0.0.0/8'));
    const odd = spelled(ODD_IPV4, any);
    fc.assert(
      fc.property(odd, (text) => {
        expect(isAllowedAddress(text, LOOPBACK)).toBe(false);
        expect(accepts(`https://${text}/`, LOOPBACK)).toBe(false);
      }),
      RUNS,
    );
  });

  it('may not have a zone', () => {
    expect(isAllowedAddress('2606:4700::1%eth0', PUBLIC_ONLY)).toBe(false);
    expect(isAllowedAddress('fe80::1%1', { ...PUBLIC_ONLY, allowNetworks: ['fe80::/10'] })).toBe(false);
  });

  it('may be in one of the networks that are added, and in no other special one', () => {
    fc.assert(
      fc.property(inBlock('127.0.0.0/8'), (bytes) => {
        for (const ip of [dotted(bytes), ...MAPPED.map((spell) => spell(bytes))]) {
          expect(isAllowedAddress(ip, LOOPBACK)).toBe(true);
        }
      }),
    );
    expect(isAllowedAddress('::1', LOOPBACK)).toBe(true);
    expect(isAllowedAddress('::2', LOOPBACK)).toBe(false);
    expect(isAllowedAddress('10.0.0.1', LOOPBACK)).toBe(false);
  });
});

describe('the URL of an endpoint', () => {
  test.each([
    'https://example.com',
    'https://example.com/',
    'https://example.com?hook=1',
    'https://example.com/hooks/doorplate?key=a@b:c',
    'https://EXAMPLE.com:443/Hook',
    'https://a_b.example.com/',
    'https://xn--bcher-kva.example/',
    'https://8.8.8.8/',
    'https://[2606:4700::1111]/',
    'https://notlocalhost.example/',
    'https://doorplate.example.com/',
    `https://example.com/${'a'.repeat(2_048 - 'https://example.com/'.length)}`,
  ])('may be %.60s', (url) => {
    expect(accepts(url)).toBe(true);
  });

  test.each([
    ['nothing', ''],
    ['no URL', 'example.com/hook'],
    ['another scheme', 'http://example.com/'],
    ['another scheme', 'ftp://example.com/'],
    ['another scheme', 'javascript:alert(1)'],
    ['another port', 'https://example.com:8443/'],
    ['another port', 'https://example.com:80/'],
    ['an empty port', 'https://example.com:/'],
    ['no port', 'https://example.com:65536/'],
    ['credentials', 'https://user:secret@example.com/'],
    ['a user', 'https://user@example.com/'],
    ['empty credentials', 'https://@example.com/'],
    ['a fragment', 'https://example.com/#part'],
    ['an empty fragment', 'https://example.com/#'],
    ['a tab', 'https://exam\tple.com/'],
    ['a newline', 'https://example.com/\n'],
    ['a leading space', ' https://example.com/'],
    ['a space', 'https://example.com/a b'],
    ['a NUL', 'https://example.com/\u0000'],
    ['a backslash', 'https://example.com\\hook'],
    ['a backslash', 'https:\\\\example.com/'],
    ['one slash', 'https:/example.com/'],
    ['no slashes', 'https:example.com/'],
    ['three slashes', 'https:///example.com/'],
    ['an escaped letter', 'https://ex%61mple.com/'],
    ['a full-width letter', 'https://ｅxample.com/'],
    ['a name that is not in ASCII', 'https://bücher.example/'],
    ['a path that is not in ASCII', 'https://example.com/é'],
    ['a trailing dot', 'https://example.com./'],
    ['an empty label', 'https://example..com/'],
    ['a hyphen in front', 'https://-example.com/'],
    ['one label', 'https://intranet/'],
    ['a label of 64', `https://${'a'.repeat(64)}.example/`],
    ['a name of 254', `https://${'a.'.repeat(126)}aa/`],
    ['an unclosed bracket', 'https://[2606:4700::1/'],
    ['a zone', 'https://[2606:4700::1%25eth0]/'],
    ['a private address', 'https://10.0.0.1/'],
    ['localhost', 'https://localhost/'],
    ['localhost', 'https://LocalHost/'],
    ['a subdomain of localhost', 'https://hook.localhost/'],
    ["the service's own origin", 'https://doorplate.example/hook'],
    ["the service's own origin", 'https://DOORPLATE.example:443/'],
    ['2,049 characters', `https://example.com/${'a'.repeat(2_049 - 'https://example.com/'.length)}`],
  ])('is refused for %s', (_, url) => {
    expect(parseDestination(url, PUBLIC_ONLY)).toEqual({ ok: false, refusal: 'invalid_webhook_url' });
  });

  test.each([
    'http://127.0.0.1:8080/hook',
    'http://[::1]:8080/',
    'http://localhost:8080/',
    'http://hook.localhost:8080/',
    'https://localhost/',
    'http://example.com/',
    'https://example.com:8080/',
  ])('may be %s for development', (url) => {
    expect(accepts(url, LOOPBACK)).toBe(true);
  });

  test.each([
    'http://127.0.0.1:8081/',
    'http://127.0.0.1:3000/',
    'http://127.9.9.9:3000/',
    'http://localhost:3000/v1',
    'http://[::1]:3000/',
    'http://[::ffff:127.0.0.1]:3000/',
    'http://10.0.0.1:8080/',
    'http://intranet:8080/',
    'http://doorplate.example/',
  ])('may not be %s, not even for development', (url) => {
    expect(accepts(url, LOOPBACK)).toBe(false);
  });

  it("is the service's own by its name, on any port", () => {
    const policy = { ...PUBLIC_ONLY, allowPorts: [9000], ownOrigins: ['http://doorplate.example:8080'] };
    expect(accepts('https://doorplate.example/', policy)).toBe(false);
    expect(accepts('https://doorplate.example:9000/', policy)).toBe(true);
  });

  it('is returned unchanged or refused', () => {
    const text = fc.oneof(
      fc.webUrl({ withFragments: true, withQueryParameters: true }),
      fc.string({ unit: 'binary' }).map((rest) => `https://${rest}`),
      fc.string({ unit: fc.constantFrom(...'a.:/@\\#?%[]-0x\t ') }).map((rest) => `https://a.b${rest}`),
    );
    fc.assert(
      fc.property(text, (url) => {
        const parsed = parseDestination(url, PUBLIC_ONLY);
        if (!parsed.ok) return;
        const { protocol, port, username, password, hash, hostname } = parsed.value;
        expect({ protocol, port, username, password, hash }).toEqual({
          protocol: 'https:',
          port: '',
          username: '',
          password: '',
          hash: '',
        });
        const origin = `https://${hostname}`;
        expect(url.toLowerCase().slice(0, origin.length)).toBe(origin);
        expect(url.slice(origin.length)).toMatch(/^(?::443)?(?:$|[/?])/);
      }),
      { numRuns: 500 },
    );
  });
});

describe('a resolved address', () => {
  test.each([
    ['127.0.0.1', 3000, true],
    ['::1', 3000, true],
    ['127.0.0.1', 8080, false],
    ['10.0.0.1', 3000, false],
  ])("%s on port %i is the service's own: %s", (ip, port, own) => {
    expect(isOwnAddress(ip, port, LOOPBACK)).toBe(own);
  });
});

it('allows nothing but its networks where it says so, and no name, which DNS would be asked for', () => {
  const demo: DestinationPolicy = { ...LOOPBACK, onlyNetworks: true };
  expect(accepts('http://127.0.0.1:8080/crm', demo)).toBe(true);
  expect(accepts('http://localhost:8080/crm', demo)).toBe(true);
  for (const url of ['https://8.8.8.8/', 'https://[2606:4700::1111]/', 'https://receiver.example.com/'])
    expect(accepts(url, demo), url).toBe(false);
  expect(isAllowedAddress('8.8.8.8', demo)).toBe(false);
});
