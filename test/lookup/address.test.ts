import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { parsePublicAddress } from '../../domain/kernel/address.ts';

/** Blocks of IANA's IPv4 and IPv6 special-purpose registries, multicast, and everything outside 2000::/3. */
const NOT_PUBLIC = [
  '0.0.0.0',
  '0.255.255.255',
  '10.0.0.0',
  '10.255.255.255',
  '100.64.0.0',
  '100.127.255.255',
  '127.0.0.1',
  '169.254.0.1',
  '172.16.0.0',
  '172.31.255.255',
  '192.0.0.0',
  '192.0.0.9',
  '192.0.0.170',
  '192.0.2.1',
  '192.31.196.1',
  '192.52.193.1',
  '192.88.99.1',
  '192.168.0.1',
  '168.63.129.16',
  '192.175.48.1',
  '198.18.0.0',
  '198.19.255.255',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::8.8.8.8',
  '64:ff9b::8.8.8.8',
  '64:ff9b:1::1',
  '100::1',
  '100:0:0:1::1',
  '2001::1',
  '2001:1::1',
  '2001:2::1',
  '2001:3::1',
  '2001:4:112::1',
  '2001:10::1',
  '2001:20::1',
  '2001:30::1',
  '2001:1ff:ffff::1',
  '2001:db8::1',
  '2002::1',
  '2002:808:808::1',
  '2620:4f:8000::1',
  '3fff::1',
  '3fff:fff::1',
  '5f00::1',
  '4000::1',
  '1fff:ffff::1',
  'fc00::1',
  'fd00::1',
  'fe80::1',
  'fec0::1',
  'ff02::1',
  '::ffff:10.0.0.1',
  '::ffff:7f00:1',
];

const NOT_AN_ADDRESS = [
  '',
  ' ',
  '8.8.8.8 ',
  ' 8.8.8.8',
  '8.8.8',
  '8.8',
  '134744072',
  '0x8.8.8.8',
  '08.8.8.8',
  '010.8.8.8',
  '8.8.8.256',
  '8.8.8.8.8',
  '8.8.8.8:53',
  '8.8.8.8/32',
  '[2600::1]',
  '2600::1%eth0',
  'fe80::1%1',
  '2600::1/64',
  '2600:::1',
  '2600::1::2',
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  '1:2:3:4:5:6:7:8::',
  '2600::12345',
  '2600::g',
  ':2600::1',
  '::ffff:010.8.8.8',
  '::ffff:8.8.8',
  '::ffff:8.8.8.8.8',
  'example.com',
  'http://8.8.8.8',
  '８.8.8.8',
  '8。8。8。8',
  '8.8.8.8\u0000',
  '1'.repeat(46),
];

describe("parsing a visitor's address", () => {
  test.each([
    ['8.8.8.8', '8.8.8.8'],
    ['::ffff:8.8.8.8', '8.8.8.8'],
    ['::FFFF:808:808', '8.8.8.8'],
    ['0:0:0:0:0:ffff:8.8.8.8', '8.8.8.8'],
    ['0000:0000:0000:0000:0000:ffff:8.8.8.8', '8.8.8.8'],
    ['2001:4860:4860::8888', '2001:4860:4860::8888'],
    ['2001:4860:4860:0000:0000:0000:0000:8888', '2001:4860:4860::8888'],
    ['2606:4700:4700::0:1111', '2606:4700:4700::1111'],
    ['2600::', '2600::'],
    ['2600:0:0:1:0:0:0:1', '2600:0:0:1::1'],
    ['2600:0:1:2:3:4:5:6', '2600:0:1:2:3:4:5:6'],
    ['192.0.1.1', '192.0.1.1'],
    ['100.63.255.255', '100.63.255.255'],
    ['2001:200::1', '2001:200::1'],
  ])('reads %s as %s', (text, canonical) => {
    expect(parsePublicAddress(text)).toBe(canonical);
  });

  test.each(NOT_PUBLIC)('rejects %s as not public', (text) => {
    expect(parsePublicAddress(text)).toBeNull();
  });

  test.each(NOT_AN_ADDRESS)('rejects the unusual spelling %j', (text) => {
    expect(parsePublicAddress(text)).toBeNull();
  });

  it('returns one canonical form that parses to itself', () => {
    const group = fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16));
    const ipv6 = fc
      .array(group, { minLength: 7, maxLength: 7 })
      .map((groups) => ['2a00', ...groups].join(':'));
    const ipv4 = fc.ipV4();
    fc.assert(
      fc.property(fc.oneof(ipv4, ipv6), (text) => {
        const canonical = parsePublicAddress(text);
        if (canonical === null) return;
        expect(parsePublicAddress(canonical)).toBe(canonical);
        expect(parsePublicAddress(text.toUpperCase())).toBe(canonical);
      }),
      { numRuns: 500 },
    );
  });

  it('never throws', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.ipV6(), fc.string({ unit: fc.constantFrom(...'0123456789abcdef:.%/') })),
        (text) => {
          parsePublicAddress(text);
        },
      ),
      { numRuns: 500 },
    );
  });
});
