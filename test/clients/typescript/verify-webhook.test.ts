import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import {
  verifyWebhook,
  type WebhookRequest,
  WebhookVerificationError,
} from '../../../clients/typescript/src/index.ts';
import { signatureHeaders } from '../../../processors/webhooks/delivery/sender.ts';

const NOW = Date.parse('2026-03-14T12:30:00.000Z');
const [secret, older] = [7, 8].map((byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`) as [
  string,
  string,
];
const keyOf = (one: string) => Buffer.from(one.slice('whsec_'.length), 'base64');

const event = {
  id: 'evt_test_0b9c4f1e-2d3a-4c5b-8e6f-7a8b9c0d1e2f',
  type: 'webhook.test',
  schema_version: 1,
  created_at: '2026-03-14T12:29:59.000Z',
  data: { message: 'Grüße' },
};
const body = Buffer.from(JSON.stringify(event));

const genuine: Record<string, string> = signatureHeaders([keyOf(secret)], event.id, NOW, body);

/** The headers that the service sends. */
const sent = (
  changes: Partial<WebhookRequest> & { secrets?: string[]; at?: number; bytes?: Buffer } = {},
) => {
  const { secrets = [secret], at = NOW, bytes = body, ...rest } = changes;
  const headers = signatureHeaders(secrets.map(keyOf), event.id, at, bytes);
  return { secret, headers, body: bytes, now: () => NOW, ...rest };
};
const faultOf = (request: WebhookRequest): string => {
  try {
    verifyWebhook(request);
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error.fault;
    throw error;
  }
  return 'none';
};

describe('a webhook', () => {
  it.each([
    ['a Buffer', body],
    ['a Uint8Array', new Uint8Array(body)],
    ['a string', body.toString()],
  ])('is verified with its body as %s', (_, raw) => {
    expect(verifyWebhook(sent({ body: raw }))).toEqual(event);
  });

  it('is verified with the Headers of fetch, and with names in any case', () => {
    const headers = genuine;
    expect(verifyWebhook(sent({ headers: new Headers(headers) }))).toEqual(event);
    const upperCase = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
    );
    expect(verifyWebhook(sent({ headers: upperCase }))).toEqual(event);
    const listed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
    expect(verifyWebhook(sent({ headers: listed }))).toEqual(event);
  });

  it('is verified as Standard Webhooks signs it', () => {
    const at = new Date(NOW);
    const headers = {
      'webhook-id': event.id,
      'webhook-timestamp': String(NOW / 1_000),
      'webhook-signature': new Webhook(secret).sign(event.id, at, body.toString()),
    };
    expect(verifyWebhook(sent({ headers }))).toEqual(event);
  });

  it('is verified during a rotation of the secret, with either secret or with both', () => {
    const both = sent({ secrets: [secret, older] });
    for (const known of [secret, older, [older, secret]]) {
      expect(verifyWebhook({ ...both, secret: known })).toEqual(event);
    }
    expect(verifyWebhook(sent({ secret: [older, secret] }))).toEqual(event);
  });

  it.each([
    ['another secret', sent({ secret: older })],
    ['another body', sent({ body: `${body} ` })],
    ['another timestamp', sent({ headers: { ...genuine, 'webhook-timestamp': String(NOW / 1_000 + 1) } })],
    ['another id', sent({ headers: { ...genuine, 'webhook-id': 'evt_test_other' } })],
  ])('is refused with %s', (_, request) => {
    expect(faultOf(request)).toBe('signature');
  });

  it('says that the raw body is needed when it gets a parsed or a serialised one', () => {
    expect(() => verifyWebhook(sent({ body: event as never }))).toThrow(/parsed object: .*express\.raw/);
    const again = JSON.stringify(JSON.parse(body.toString()), null, 1);
    expect(() => verifyWebhook(sent({ body: again }))).toThrow(/serialised again, .*express\.raw/);
  });

  it('is refused more than five minutes early or late', () => {
    expect(faultOf(sent({ at: NOW - 300_000 }))).toBe('none');
    expect(faultOf(sent({ at: NOW + 300_000 }))).toBe('none');
    expect(faultOf(sent({ at: NOW - 301_000 }))).toBe('timestamp');
    expect(faultOf(sent({ at: NOW + 301_000 }))).toBe('timestamp');
  });

  it.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
    'is refused without exactly one %s',
    (name) => {
      const headers = genuine;
      const value = String(headers[name]);
      const { [name]: _, ...without } = headers;
      for (const wrong of [
        without,
        { ...headers, [name]: '' },
        { ...headers, [name]: `${value}\n` },
        { ...headers, [name]: [value, value] },
        { ...headers, [name]: `${value}, ${value}` },
        { ...headers, [name.toUpperCase()]: value },
      ]) {
        expect(faultOf(sent({ headers: wrong })), JSON.stringify(wrong)).toBe('headers');
      }
    },
  );

  it.each(['{"id":"evt_test_other"}', 'null', 'not JSON'])('is refused when the body is %s', (text) => {
    expect(faultOf(sent({ bytes: Buffer.from(text) }))).toBe('event');
  });

  it.each(['', 'whsec_', 'whsec_A', secret.slice(0, 30), 'dp_key', []])(
    'is not verified with %o for a secret, which the error does not repeat',
    (wrong) => {
      expect(() => verifyWebhook(sent({ secret: wrong }))).toThrow(
        new TypeError('secret must be a signing secret (whsec_…)'),
      );
    },
  );
});
