import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { describe, expect, it, vi } from 'vitest';
import type { SendResult } from '../../processors/webhooks/sender.ts';
import { type Certificate, makeAuthority, makeRsaCertificate } from '../support/certificates.ts';
import { startRawReceiver, startReceiver } from '../support/receiver.ts';
import {
  authority,
  BODY,
  certificate,
  HEADERS,
  NAME,
  outcome,
  post,
  raw,
  receiver,
  senderTo,
  undoing,
} from '../support/sending.ts';
import { startTicketReceiver } from '../support/ticket-receiver.ts';

describe('a certificate or TLS handshake', () => {
  const presenting = async (own: Certificate) => {
    const target = await startReceiver({ tls: own });
    undoing.push(target.close);
    return target;
  };

  it('is refused without a trusted authority', async () => {
    const target = await presenting(await (await makeAuthority()).issue([NAME]));
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'tls'));
    expect(target.requests).toEqual([]);
  });

  it('is accepted from a test authority only where that authority is trusted', async () => {
    const target = await receiver();
    expect(await post(senderTo(target, { extraCa: null }), target)).toEqual(outcome(null, 'tls'));
  });

  it('is refused when the certificate names another host', async () => {
    const target = await presenting(await authority.issue(['other.example', '127.0.0.1']));
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'tls'));
  });

  it("is refused when the certificate does not include the URL's IP address", async () => {
    const target = await presenting(await authority.issue([NAME]));
    const url = `https://127.0.0.1:${target.port}/`;
    expect(
      await senderTo(target).send({ url, headers: HEADERS, body: BODY, partner_id: 'a partner' }),
    ).toEqual(outcome(null, 'tls'));
  });

  it('is refused when the certificate has expired', async () => {
    const validity = { from: new Date('2020-01-01'), to: new Date('2020-02-01') };
    const target = await presenting(await authority.issue([NAME], validity));
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'tls'));
  });

  it('is checked whatever the environment variables say', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    undoing.push(() => vi.unstubAllEnvs());
    const target = await presenting(await (await makeAuthority()).issue([NAME]));
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'tls'));
  });
});

it('is refused when the receiver chooses an expensive key exchange', async () => {
  // A Diffie-Hellman prime of 10,000 bits blocks the event loop for half a second.
  const rsa = await makeRsaCertificate(NAME);
  const finite = { ciphers: 'DHE-RSA-AES128-GCM-SHA256', dhparam: 'auto', maxVersion: 'TLSv1.2' } as const;
  const target = await startReceiver({ tls: { ...rsa, ...finite } });
  undoing.push(target.close);
  expect(await post(senderTo(target, { extraCa: rsa.cert }), target)).toEqual(outcome(null, 'tls'));
  const usual = await startReceiver({ tls: { ...rsa, maxVersion: 'TLSv1.2' } });
  undoing.push(usual.close);
  expect(await post(senderTo(usual, { extraCa: rsa.cert }), usual)).toEqual(outcome(204, null));
});

it('is cut off when a receiver sends over 16 KiB before it completes', async () => {
  const chain = (bytes: number) =>
    [certificate.cert, ...Array(Math.floor(bytes / derBytes(authority.cert))).fill(authority.cert)].join(
      '\n',
    );
  const long = await startReceiver({ tls: { ...certificate, cert: chain(18_000) } });
  undoing.push(long.close);
  expect(await post(senderTo(long), long)).toEqual(outcome(null, 'connect'));
  expect(long.requests).toEqual([]);
  const short = await startReceiver({ tls: { ...certificate, cert: chain(14_000) } });
  undoing.push(short.close);
  expect(await post(senderTo(short), short)).toEqual(outcome(204, null));
});

it('is cut off when TLS sends several times the bytes of its content', async () => {
  const inRecordsOfOneByte = async (socket: Socket, text: string): Promise<void> => {
    for (const byte of text) await new Promise<unknown>((resolve) => socket.write(byte, resolve));
  };
  const answering = async (headerBytes: number): Promise<SendResult> => {
    const head = `HTTP/1.1 204 No Content\r\nx: ${'x'.repeat(headerBytes)}\r\n\r\n`;
    const target = await raw(
      (socket) =>
        void socket.once('data', () => inRecordsOfOneByte(socket, head)).on('error', () => undefined),
    );
    const limits = { totalMs: 9_000, dnsMs: 200, connectMs: 200 };
    return post(senderTo(target, { limits }), target);
  };
  expect(await answering(700)).toEqual(outcome(204, null));
  expect(await answering(1_500)).toEqual(outcome(null, 'connect'));
});

describe('a receiver that sends session tickets before its answer', () => {
  const limits = { totalMs: 9_000, dnsMs: 200, connectMs: 5_000 };

  it('is cut off before TLS has taken most of very many', async () => {
    const target = await startTicketReceiver(certificate, () => 6_000);
    undoing.push(target.close);
    const emitted = vi.spyOn(TLSSocket.prototype, 'emit');
    undoing.push(() => emitted.mockRestore());
    expect(await post(senderTo(target, { limits }), target)).toEqual(outcome(null, 'connect'));
    expect(emitted.mock.calls.filter(([event]) => String(event) === 'session').length).toBeLessThan(2_000);
  });

  it('is charged for them on a connection that it has kept', async () => {
    const charged: [string, number, string][] = [];
    const target = await startTicketReceiver(certificate, (nth) => (nth === 0 ? 0 : 1_200));
    undoing.push(target.close);
    const sender = senderTo(target, { limits, onCost: (...charge) => void charged.push(charge) });
    // Some of them open another connection.
    for (let n = 0; n < 6; n += 1)
      expect(await post(sender, target, 'its partner')).toEqual(outcome(204, null));
    const kept = 6 - (await target.connections());
    expect(kept).toBeGreaterThan(0);
    // More where the first response of a process takes its time.
    expect(charged.filter(([, , kind]) => kind === 'response').length).toBeGreaterThanOrEqual(kept);
  });
});

it('is reported with its cost and partner, once for each connection', async () => {
  const charged: [string, number, string][] = [];
  const onCost = (...charge: [string, number, string]) => {
    if (charge[2] !== 'response') charged.push(charge);
  };
  const target = await receiver();
  const sender = senderTo(target, { onCost });
  for (const _ of [1, 2, 3, 4, 5, 6])
    expect(await post(sender, target, 'its partner')).toEqual(outcome(204, null));
  const opened = charged.splice(0);
  expect(opened).toHaveLength(await target.connections());
  for (const one of opened) expect(one).toEqual(['its partner', expect.any(Number), 'succeeded']);
  const withoutTestAuthority = senderTo(target, { extraCa: null, onCost });
  expect(await post(withoutTestAuthority, target, 'another')).toEqual(outcome(null, 'tls'));
  expect(charged).toEqual([['another', expect.any(Number), 'failed']]);
  for (const [, ms] of [...opened, ...charged]) expect(ms).toBeGreaterThan(0);
});

it('agrees on no group of 2 ms and more, which the receiver would choose', async () => {
  for (const [ecdhCurve, result] of [
    ['P-521', outcome(null, 'tls')],
    ['ffdhe3072', outcome(null, 'tls')],
    ['P-384', outcome(204, null)],
    ['X25519MLKEM768', outcome(204, null)],
  ] as const) {
    const target = await startReceiver({ tls: { ...certificate, ecdhCurve } });
    undoing.push(target.close);
    expect(await post(senderTo(target), target), ecdhCurve).toEqual(result);
  }
});

/** Changes the certificate message as it is sent. */
const derBytes = (pem: string): number => new X509Certificate(pem).raw.length;

it('is refused when it is the second one on a connection', async () => {
  const answerAfterHandshake = (socket: Socket) =>
    (socket as TLSSocket).renegotiate({}, (error) => {
      if (!error) socket.end('HTTP/1.1 204 No Content\r\n\r\n');
    });
  const target = await startRawReceiver(
    (socket) => void socket.once('data', () => answerAfterHandshake(socket)),
    {
      tls: { ...certificate, maxVersion: 'TLSv1.2' },
    },
  );
  undoing.push(target.close);
  expect(await post(senderTo(target), target)).toMatchObject({ http_status: null });
});
