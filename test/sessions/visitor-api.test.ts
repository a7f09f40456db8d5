import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { createOwnHost, createServedHosts } from '../../http/server/own-host.ts';
import { createVisitorAddress, networkOf } from '../../http/server/visitor.ts';
import { nonVisitorReason } from '../../write-api/sessions/capture-request.ts';

const headers = (of: Readonly<Record<string, string>>) => ({ header: (name: string) => of[name] });
const visitorOf = createVisitorAddress(['127.0.0.0/8', '::1/128', '10.0.0.0/8', 'fd00::/8']);
const seen = (peer: string, forwarded?: string) =>
  visitorOf({ peer, ...headers(forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }) });

describe("a visitor's address", () => {
  test.each<[string, string, string | undefined, string]>([
    ['is the peer’s', '9.9.9.9', undefined, '9.9.9.9'],
    ['is the peer’s where it is not trusted', '9.9.9.9', '8.8.8.8', '9.9.9.9'],
    ['is what a trusted proxy tells', '10.0.0.1', '8.8.8.8', '8.8.8.8'],
    ['is not what the client itself put before that', '10.0.0.1', '1.1.1.1, 8.8.8.8', '8.8.8.8'],
    ['is the one before a chain of trusted proxies', '10.0.0.1', '1.1.1.1, 8.8.8.8, 10.0.0.2', '8.8.8.8'],
    ['is the leftmost where all are trusted', '10.0.0.1', '10.0.0.9, 10.0.0.2', '10.0.0.9'],
    ['is the trusted one before nonsense', '10.0.0.1', '8.8.8.8, nonsense, 10.0.0.2', '10.0.0.2'],
    ['is the peer’s before nonsense', '10.0.0.1', '8.8.8.8, unknown', '10.0.0.1'],
    ['is the peer’s where the header is empty', '10.0.0.1', '', '10.0.0.1'],
    ['has no port', '10.0.0.1', '8.8.8.8:1234', '8.8.8.8'],
    ['has no brackets', '10.0.0.1', '[2A00:1450::0:1]:443', '2a00:1450::1'],
    ['has no brackets without a port either', '10.0.0.1', '[2a00:1450::1]', '2a00:1450::1'],
    ['is canonical', '10.0.0.1', '2A00:1450:0:0::1', '2a00:1450::1'],
    ['is IPv4 where it was mapped', '10.0.0.1', '::ffff:8.8.8.8', '8.8.8.8'],
    ['is given by a mapped proxy', '::ffff:10.0.0.1', '8.8.8.8', '8.8.8.8'],
    ['is given by a proxy over IPv6', '::1', '8.8.8.8,fd00::2', '8.8.8.8'],
    ['has no interface', 'fe80::1%eth0', undefined, 'fe80::1'],
    ['is unknown once the socket is gone', '', '8.8.8.8', '::'],
    ['is not of a sloppy spelling', '10.0.0.1', '8.8.8.8, 010.8.8.8', '10.0.0.1'],
  ])('%s', (_what, peer, forwarded, expected) => {
    expect(seen(peer, forwarded)).toBe(expected);
  });

  const trusted = fc.constantFrom('10.0.0.2', '127.0.0.1', 'fd00::7', '10.1.2.3:80', '::ffff:10.0.0.9');
  const anything = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.string(),
    fc.constantFrom('unknown', '_hidden', '8.8.8.8:x'),
  );

  it('is that of the first stranger from the right, whatever stands before it', () => {
    fc.assert(
      fc.property(fc.array(anything), fc.array(trusted), (before, proxies) => {
        const entries = [...before.map((text) => text.replaceAll(',', '')), '8.8.4.4', ...proxies];
        expect(seen('10.0.0.1', entries.join(', '))).toBe('8.8.4.4');
      }),
    );
  });
  it('is an address, whatever is sent', () => {
    fc.assert(
      fc.property(fc.array(anything), (entries) => {
        expect(seen('10.0.0.1', entries.join(','))).toMatch(/^[0-9a-f.:]+$/);
      }),
    );
  });
  it('is never taken from anyone who is not trusted', () => {
    fc.assert(
      fc.property(fc.array(anything), (entries) => {
        expect(seen('9.9.9.9', entries.join(','))).toBe('9.9.9.9');
      }),
    );
  });
});

describe('a request without a visitor', () => {
  test.each([
    ['prefetch', { 'sec-purpose': 'prefetch' }],
    ['prefetch', { 'sec-purpose': 'prefetch;prerender' }],
    ['prefetch', { purpose: 'prefetch' }],
    ['crawler', { 'user-agent': 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)' }],
    ['crawler', { 'user-agent': 'Mozilla/5.0 (compatible; YandexRenderResourcesBot/1.0)' }],
    ['crawler', { 'user-agent': 'facebookexternalhit/1.1' }],
    ['crawler', { 'user-agent': 'WhatsApp/2.23.20.0 A' }],
    ['crawler', { 'user-agent': 'LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient)' }],
  ])('is a %s', (reason, of) => {
    expect(nonVisitorReason(headers(of as Readonly<Record<string, string>>))).toBe(reason);
  });
  test.each([
    ['nothing said', {}],
    [
      'a browser',
      { 'user-agent': 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/126.0.0.0 Safari/537.36' },
    ],
    ['a crawler’s name after 512 characters', { 'user-agent': `${'Mozilla/5.0 '.repeat(43)} Googlebot/2.1` }],
    ['a headless browser', { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/126.0.0.0' }],
    ['an HTTP tool', { 'user-agent': 'curl/8.5.0' }],
    ['a library', { 'user-agent': 'python-requests/2.31' }],
    [
      'a browser inside a social app',
      { 'user-agent': 'Mozilla/5.0 (iPhone) [FBAN/FBIOS;FBAV/450.0] LinkedInApp' },
    ],
    ['another', { 'user-agent': 'Mozilla/5.0 (iPhone; CPU iPhone OS 17_0) [Pinterest/iOS]' }],
  ])('is not one with %s', (_what, of) => {
    expect(nonVisitorReason(headers(of as Readonly<Record<string, string>>))).toBeNull();
  });
});

describe('the own host', () => {
  test.each<[string, string, boolean]>([
    ['https://doorplate.example', 'doorplate.example', true],
    ['https://doorplate.example', 'Doorplate.Example', true],
    ['https://doorplate.example', 'doorplate.example:443', true],
    ['https://doorplate.example', 'doorplate.example:8443', false],
    ['https://doorplate.example', 'www.doorplate.example', false],
    ['https://doorplate.example', 'localhost', false],
    ['https://doorplate.example', '', false],
    ['https://doorplate.example:8443', 'doorplate.example:8443', true],
    ['https://doorplate.example:8443', 'doorplate.example', false],
    ['http://127.0.0.1:3000', 'localhost:3000', true],
    ['http://127.0.0.1:3000', '[::1]:3000', true],
    ['http://localhost:3000', '127.0.0.1:3000', true],
    ['http://[::1]:3000', 'localhost:3000', true],
    ['http://127.0.0.1:3000', 'localhost:3001', false],
    ['http://127.0.0.1:3000', 'localhost', false],
    ['http://127.0.0.1:3000', 'doorplate.example:3000', false],
  ])('of %s is %j: %s', (publicUrl, host, own) => {
    expect(createOwnHost(publicUrl)(host)).toBe(own);
  });

  it('may have other names, of which a claim has no effect', () => {
    const isOwn = createOwnHost('https://doorplate.example', ['former.example']);
    const { collectsOn, isCustomDomain } = createServedHosts(isOwn, () => 'a tracker');
    for (const host of ['former.example', 'Former.Example.', 'former.example:8443']) {
      expect([isOwn(host), isCustomDomain(host), collectsOn(host, 'another')]).toEqual([true, false, true]);
    }
    for (const host of ['www.former.example', 'xformer.example']) {
      expect([isOwn(host), isCustomDomain(host), collectsOn(host, 'another')]).toEqual([false, true, false]);
    }
  });
});

test.each([
  ['9.9.9.9', '9.9.9.9'],
  ['2a01:4f8:1:2:3:4:5:6', '2a01:4f8:1:2::/64'],
  ['2a01::1', '2a01:0:0:0::/64'],
])('%s stands for %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
