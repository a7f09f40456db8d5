import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it, test } from 'vitest';
import { systemClock } from '../../platform/clock/clock.ts';
import { parseRetryAfter, signatureHeaders } from '../../processors/webhooks/delivery/sender.ts';

const whsec = (secret: Buffer) => `whsec_${secret.toString('base64')}`;
/** The package verifies with real time. */
const now = systemClock.now();

describe('the signature', () => {
  it('verifies with each signing secret and with no other', () => {
    const secret = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(fc.array(secret, { minLength: 1, maxLength: 2 }), fc.string(), (secrets, message) => {
        const body = Buffer.from(JSON.stringify({ data: { message } }));
        const headers = signatureHeaders(secrets, 'evt_test_1', now, body);
        for (const known of secrets) {
          expect(new Webhook(whsec(known)).verify(body, headers)).toEqual({ data: { message } });
        }
        expect(() => new Webhook(whsec(randomBytes(32))).verify(body, headers)).toThrow();
        expect(() =>
          new Webhook(whsec(secrets[0] ?? Buffer.of())).verify(
            Buffer.concat([body, Buffer.from(' ')]),
            headers,
          ),
        ).toThrow();
      }),
      { numRuns: 100 },
    );
  });

  it('has the form of the Standard Webhooks spec', () => {
    const two = [randomBytes(32), randomBytes(32)];
    const headers = signatureHeaders(two, 'evt_session_1', 1_773_491_400_999, Buffer.from('{}'));
    expect(headers).toEqual({
      'content-type': 'application/json',
      'user-agent': 'Doorplate-Webhooks/1',
      'webhook-id': 'evt_session_1',
      'webhook-timestamp': '1773491400',
      'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/),
    });
    const [newest] = two;
    const first = signatureHeaders(
      newest ? [newest] : [],
      'evt_session_1',
      1_773_491_400_000,
      Buffer.from('{}'),
    );
    expect(headers['webhook-signature']?.split(' ')[0]).toBe(first['webhook-signature']);
  });
});

const NOON = Date.UTC(2026, 2, 14, 12);
const DAY = 86_400_000;

describe('Retry-After', () => {
  test.each([
    ['0', 0],
    ['120', 120_000],
    ['86400', DAY],
    ['86401', DAY],
    ['99999999999999999999', DAY],
    ['9'.repeat(400), DAY],
    ['Sat, 14 Mar 2026 12:02:00 GMT', 120_000],
    ['Sat, 14 Mar 2026 11:00:00 GMT', 0],
    ['Sat, 14 Mar 2026 12:00:00 GMT', 0],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 0],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 0],
    ['Sun Nov  6 08:49:37 1994', 0],
    ['Saturday, 14-Mar-26 12:02:00 GMT', 120_000],
    ['Sat Mar 14 12:02:00 2026', 120_000],
    [' 120\t', 120_000],
    ['Fri, 31 Dec 9999 23:59:59 GMT', DAY],
  ])('of %s means %i milliseconds', (text, ms) => {
    expect(parseRetryAfter(text, NOON)).toBe(ms);
  });

  test.each([
    '',
    ' ',
    '-1',
    '+1',
    '1.5',
    '1e3',
    '0x10',
    '１２０',
    'soon',
    '120, 60',
    '2026-03-14T12:02:00Z',
    'Sat, 14 Mar 2026 12:02:00 +0000',
    'Sat, 14 Mar 2026 12:02:00',
    'Sun, 14 Mar 2026 12:02:00 GMT',
    'Sat, 14 Mar 2026 25:02:00 GMT',
    'Sun, 30 Feb 2026 12:02:00 GMT',
    'Sunday, 14-Mar-26 12:02:00 GMT',
    'Sat Mar 15 12:02:00 2026',
    'Sat Mar 14 12:02:00 2026 GMT',
    'sat, 14 mar 2026 12:02:00 gmt',
  ])('of %j is ignored', (text) => {
    expect(parseRetryAfter(text, NOON)).toBeNull();
  });

  it('is ignored when it is missing or repeated', () => {
    expect(parseRetryAfter(undefined, NOON)).toBeNull();
    expect(parseRetryAfter([], NOON)).toBeNull();
    expect(parseRetryAfter(['60', '120'], NOON)).toBe(60_000);
  });
});
