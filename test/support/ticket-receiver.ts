/** A receiver that sends session tickets of its own making before each answer: Node's servers send two a connection. */
import { createCipheriv, createHmac } from 'node:crypto';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { createSecureContext, TLSSocket } from 'node:tls';
import type { Certificate } from './certificates.ts';
import { type Listening, startRawReceiver } from './receiver.ts';

const CIPHER = {
  name: 'aes-256-gcm',
  suite: 'TLS_AES_256_GCM_SHA384',
  hash: 'sha384',
  keyBytes: 32,
  ivBytes: 12,
} as const;
const [HANDSHAKE, CONTENT] = [22, 23];
const TAG_BYTES = 16;
const TICKETS_A_RECORD = 900;
const ANSWER = Buffer.from('HTTP/1.1 204 No Content\r\n\r\n');
/** So that OpenSSL's own tickets have been sent. */
const AFTER_HANDSHAKE_MS = 30;

/** HKDF-Expand-Label of one block (RFC 8446 section 7.1), without a context. */
const expand = (secret: Buffer, label: string, length: number): Buffer => {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.from([0, length, name.length]), name, Buffer.from([0, 1])]);
  return createHmac(CIPHER.hash, secret).update(info).digest().subarray(0, length);
};

/** Returns a function that encrypts records. `sent`: records sent under this secret so far. */
const recordsUnder = (secret: Buffer, sent: number) => {
  const key = expand(secret, 'key', CIPHER.keyBytes);
  const iv = expand(secret, 'iv', CIPHER.ivBytes);
  let number = BigInt(sent);
  return (type: number, body: Buffer): Buffer => {
    const head = Buffer.from([CONTENT, 3, 3, 0, 0]);
    head.writeUInt16BE(body.length + 1 + TAG_BYTES, 3);
    const nonce = Buffer.from(iv);
    nonce.writeBigUInt64BE(nonce.readBigUInt64BE(4) ^ number, 4);
    number += 1n;
    const cipher = createCipheriv(CIPHER.name, key, nonce).setAAD(head);
    return Buffer.concat([
      head,
      cipher.update(Buffer.concat([body, Buffer.from([type])])),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
  };
};

/** The shortest NewSessionTicket (RFC 8446 section 4.6.1). */
const ticket = (number: number): Buffer => {
  const message = Buffer.from([4, 0, 0, 14, 0, 0, 28, 32, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0]);
  message.writeUInt32BE(number, 8);
  return message;
};

const countRecords = (bytes: Buffer): number => {
  let count = 0;
  for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt16BE(at + 3)) count += 1;
  return count;
};

/** @param ticketsOf the number of tickets before the answer to the nth request of a connection, from 0 */
export const startTicketReceiver = (
  certificate: Certificate,
  ticketsOf: (nth: number) => number,
): Promise<Listening> => {
  const secureContext = createSecureContext({ ...certificate, minVersion: 'TLSv1.3', ciphers: CIPHER.suite });
  return startRawReceiver((tcp) => serve(tcp, secureContext, ticketsOf));
};

const serve = (
  tcp: Socket,
  secureContext: ReturnType<typeof createSecureContext>,
  ticketsOf: (nth: number) => number,
): void => {
  const flights: Buffer[] = [];
  const under = new Duplex({
    read: () => undefined,
    write: (bytes: Buffer, _encoding, done) => {
      flights.push(bytes);
      tcp.write(bytes, () => done());
    },
  });
  tcp.on('data', (bytes) => under.push(bytes)).on('close', () => under.destroy());
  const socket = new TLSSocket(under, { isServer: true, secureContext });
  let secret = Buffer.alloc(0);
  let record: ReturnType<typeof recordsUnder> | null = null;
  let answered = 0;
  const answer = (): void => {
    // The first flight is under the keys of the handshake.
    record ??= recordsUnder(
      secret,
      flights.slice(1).reduce((sum, flight) => sum + countRecords(flight), 0),
    );
    const tickets = Array.from({ length: ticketsOf(answered) }, (_, number) => ticket(number));
    answered += 1;
    for (let at = 0; at < tickets.length; at += TICKETS_A_RECORD) {
      tcp.write(record(HANDSHAKE, Buffer.concat(tickets.slice(at, at + TICKETS_A_RECORD))));
    }
    tcp.write(record(CONTENT, ANSWER));
  };
  let request = '';
  socket.on('error', () => undefined);
  socket.on('keylog', (line: Buffer) => {
    const [, hex] = /^SERVER_TRAFFIC_SECRET_0 \S+ (\S+)/.exec(line.toString()) ?? [];
    if (hex !== undefined) secret = Buffer.from(hex, 'hex');
  });
  socket.on('data', (bytes) => {
    request += bytes.toString();
    if (!request.endsWith('}')) return;
    request = '';
    setTimeout(answer, AFTER_HANDSHAKE_MS);
  });
};
