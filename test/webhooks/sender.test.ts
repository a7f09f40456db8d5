import { X509Certificate } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { afterEach, beforeAll, describe, expect, it, test, vi } from 'vitest';
import {
  createSender,
  type Sender,
  type SenderLimits,
  type SendResult,
} from '../../processors/webhooks/sender.ts';
import type { Resolver } from '../../processors/webhooks/vet.ts';
import {
  type Authority,
  type Certificate,
  makeAuthority,
  makeRsaCertificate,
} from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { type Listening, type Received, startRawReceiver, startReceiver } from '../support/receiver.ts';
import { startTicketReceiver } from '../support/ticket-receiver.ts';

const NOON = Date.UTC(2026, 2, 14, 12);
const DAY_MS = 86_400_000;
const LIMITS: SenderLimits = { totalMs: 400, dnsMs: 200, connectMs: 200 };
const BODY = Buffer.from(JSON.stringify({ id: 'evt_test_1', text: 'é' }));
const HEADERS = { 'content-type': 'application/json', 'webhook-id': 'evt_test_1' };
const NAME = 'hooks.example';

/** Resolves the name to the loopback address only. */
const RESOLVER: Resolver = { resolve4: async () => ['127.0.0.1'], resolve6: async () => [] };

let authority: Authority;
let certificate: Certificate;
beforeAll(async () => {
  authority = await makeAuthority();
  certificate = await authority.issue([NAME, '127.0.0.1']);
});

const undoing: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of undoing.splice(0).reverse()) await undo();
});

const senderTo = (
  { port }: { port: number },
  {
    limits = LIMITS,
    resolver = RESOLVER,
    extraCa = authority.cert as string | null,
    onCost = (_partnerId: string, _ms: number, _outcome: string): void => undefined,
  } = {},
): Sender => {
  const policy = { allowHttp: true, allowPorts: [port], allowNetworks: ['127.0.0.0/8'], ownOrigins: [] };
  const sender = createSender({
    policy,
    clock: { now: () => NOON },
    resolver,
    limits,
    extraCa,
    onCost,
  });
  undoing.push(sender.close);
  return sender;
};

const urlOf = ({ port }: { port: number }) => `https://${NAME}:${port}/hooks/1?a=b`;
const post = (sender: Sender, target: { port: number }, partner_id = 'a partner') =>
  sender.send({ url: urlOf(target), headers: HEADERS, body: BODY, partner_id });

const receiver = async (answer?: (request: Received, response: ServerResponse) => void) => {
  const started = await startReceiver({ tls: certificate, ...(answer && { answer }) });
  undoing.push(started.close);
  return started;
};

const raw = async (treat: (socket: Socket) => void): Promise<Listening> => {
  const started = await startRawReceiver(treat, { tls: certificate });
  undoing.push(started.close);
  return started;
};

const outcome = (http_status: number | null, error: string | null, retry_after_ms: number | null = null) => ({
  http_status,
  error,
  retry_after_ms,
});

const HINT = 'HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n';

/** Writes the piece repeatedly, as fast as the other side reads it. Returns how many bytes were written so far. */
const flood = (socket: Socket, piece: string): (() => number) => {
  const chunk = Buffer.from(piece.repeat(Math.ceil(65_536 / piece.length)));
  let written = 0;
  const more = (): void => {
    while (!socket.destroyed) {
      written += chunk.length;
      if (!socket.write(chunk)) return;
    }
  };
  socket.on('drain', more);
  more();
  return () => written;
};

/** Writes the piece repeatedly until the other side stops reading. */
const drip = (socket: Socket, piece: string, everyMs: number): void => {
  const timer = setInterval(() => socket.writable && socket.write(piece), everyMs);
  socket.on('close', () => clearInterval(timer));
};

describe('a response', () => {
  test.each([
    [200, outcome(200, null)],
    [201, outcome(201, null)],
    [202, outcome(202, null)],
    [204, outcome(204, null)],
    [299, outcome(299, null)],
    [300, outcome(300, 'redirect')],
    [301, outcome(301, 'redirect')],
    [304, outcome(304, 'redirect')],
    [308, outcome(308, 'redirect')],
    [400, outcome(400, 'http_status')],
    [410, outcome(410, 'http_status')],
    [500, outcome(500, 'http_status')],
    [503, outcome(503, 'http_status')],
    [999, outcome(999, 'http_status')],
  ])('with status %i is reported with that status', async (status, expected) => {
    const target = await receiver((_request, response) => {
      const { port } = target;
      response.writeHead(status, { location: `https://${NAME}:${port}/elsewhere` }).end();
    });
    expect(await post(senderTo(target), target)).toEqual(expected);
    expect(target.requests).toHaveLength(1);
  });

  test.each([
    ['120', 120_000],
    ['999999', DAY_MS],
    ['Sat, 14 Mar 2026 12:02:00 GMT', 120_000],
    ['Mon, 16 Mar 2026 12:00:00 GMT', DAY_MS],
    ['tomorrow', null],
  ])('of 429 may ask to wait for %s', async (wait, ms) => {
    const target = await receiver(
      (_request, response) => void response.writeHead(429, { 'retry-after': wait }).end(),
    );
    expect(await post(senderTo(target), target)).toEqual(outcome(429, 'http_status', ms));
  });

  it('of success requests no delay', async () => {
    const target = await receiver(
      (_request, response) => void response.writeHead(200, { 'retry-after': '120' }).end(),
    );
    expect(await post(senderTo(target), target)).toEqual(outcome(200, null));
  });

  it.each([1, 12])(
    'of %i KB of headers and 40 KB counts although its connection is closed behind it',
    async (kb) => {
      const fields = Array.from({ length: kb }, (_, nth) => `x-${nth}: ${'a'.repeat(1_000)}\r\n`).join('');
      const body = 'b'.repeat(40_000);
      const target = await raw((socket) => {
        socket.once('data', () =>
          socket.end(`HTTP/1.1 200 OK\r\n${fields}content-length: 40000\r\n\r\n${body}`),
        );
      });
      expect(await post(senderTo(target), target)).toEqual(outcome(200, null));
    },
  );

  it('may follow interim responses', async () => {
    const target = await receiver((_request, response) => {
      response.writeEarlyHints({ link: '</a>; rel=preload' });
      response.writeProcessing();
      response.writeHead(204).end();
    });
    expect(await post(senderTo(target), target)).toEqual(outcome(204, null));
  });
});

it("is not requested from a partner's own active custom domain, and is from that name for other partners", async () => {
  const target = await receiver();
  const policy = {
    allowHttp: true,
    allowPorts: [target.port],
    allowNetworks: ['127.0.0.0/8'],
    ownOrigins: [],
  };
  const sender = createSender({
    policy,
    clock: { now: () => NOON },
    resolver: RESOLVER,
    limits: LIMITS,
    extraCa: authority.cert,
    isOwnDomain: async (hostname, partnerId) => hostname === NAME && partnerId === 'its owner',
  });
  undoing.push(sender.close);
  expect(await post(sender, target, 'its owner')).toEqual(outcome(null, 'own_origin'));
  expect(await target.connections()).toBe(0);
  expect(await post(sender, target, 'another partner')).toEqual(outcome(204, null));
});

describe('a request', () => {
  it("carries the body byte for byte and the URL's name as its host", async () => {
    const target = await receiver();
    await post(senderTo(target), target);
    expect(target.requests).toEqual([
      {
        method: 'POST',
        path: '/hooks/1?a=b',
        headers: {
          ...HEADERS,
          host: `${NAME}:${target.port}`,
          connection: 'keep-alive',
          'content-length': String(BODY.length),
        },
        body: BODY,
        servername: NAME,
        resumed: false,
      },
    ]);
  });

  it('reaches a URL with an IP address instead of a name', async () => {
    const target = await receiver();
    const url = `https://127.0.0.1:${target.port}`;
    expect(
      await senderTo(target).send({ url, headers: HEADERS, body: BODY, partner_id: 'a partner' }),
    ).toEqual(outcome(204, null));
    expect(target.requests[0]).toMatchObject({ path: '/', servername: null });
  });
});

describe('a connection', () => {
  it('is reused for the next attempt', async () => {
    const target = await receiver(
      (_request, response) => void response.writeHead(200).end('x'.repeat(10_000)),
    );
    const sender = senderTo(target);
    for (const _ of [1, 2, 3, 4, 5, 6]) expect(await post(sender, target)).toEqual(outcome(200, null));
    // undici reuses a connection one turn of the event loop later.
    expect(await target.connections()).toBeLessThanOrEqual(2);
  });

  it('is opened for each concurrent attempt, so no attempt waits for another', async () => {
    const held: ServerResponse[] = [];
    const target = await receiver((_request, response) => {
      if (held.push(response) === 32) for (const one of held) one.writeHead(204).end();
    });
    const sender = senderTo(target, { limits: { totalMs: 5_000, dnsMs: 1_000, connectMs: 3_000 } });
    const outcomes = await Promise.all(Array.from({ length: 32 }, () => post(sender, target)));
    expect(outcomes.every(({ http_status }) => http_status === 204)).toBe(true);
    expect(await target.connections()).toBe(32);
  });

  it('resumes the TLS session of an earlier connection to any address of the name', async () => {
    const target = await receiver(
      (_request, response) => void response.writeHead(204, { connection: 'close' }).end(),
    );
    const addresses = [['127.0.0.1'], ['127.0.0.1', '127.0.0.9']];
    const resolver = { ...RESOLVER, resolve4: async () => addresses.shift() ?? [] };
    const limits = { totalMs: 5_000, dnsMs: 1_000, connectMs: 3_000 };
    const sender = senderTo(target, { resolver, limits });
    for (const _ of [1, 2]) expect(await post(sender, target)).toEqual(outcome(204, null));
    expect(target.requests.map(({ resumed }) => resumed)).toEqual([false, true]);
  });

  it('is opened again when it was lost', async () => {
    const target = await receiver(
      (_request, response) => void response.writeHead(204).end(() => response.socket?.destroy()),
    );
    const sender = senderTo(target);
    expect(await post(sender, target)).toEqual(outcome(204, null));
    await eventually(
      'the loss is noticed',
      () => post(sender, target),
      ({ http_status }) => http_status === 204,
    );
  });
});

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
    expect(charged.filter(([, , kind]) => kind === 'response')).toHaveLength(kept);
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

it('charges the partner for a response that takes long to parse, although the delivery succeeds', async () => {
  const charged: [string, number, string][] = [];
  const target = await raw((socket) => {
    socket.once('data', () =>
      socket.write(
        `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n${'t:x\r\n'.repeat(9_000)}\r\n`,
      ),
    );
  });
  const sender = senderTo(target, {
    limits: { totalMs: 7_000, dnsMs: 1_000, connectMs: 5_000 },
    onCost: (...charge) => void charged.push(charge),
  });
  expect(await post(sender, target, 'its partner')).toEqual(outcome(200, null));
  expect(charged).toContainEqual(['its partner', expect.any(Number), 'response']);
});

it('charges the partner for a DNS answer with thousands of addresses', async () => {
  const charged: [string, number, string][] = [];
  const many = Array.from({ length: 4_000 }, (_, index) => `127.0.${index >> 8}.${index & 255}`);
  const sender = senderTo(
    { port: 443 },
    {
      resolver: { resolve4: async () => many, resolve6: async () => [] },
      onCost: (...charge) => void charged.push(charge),
    },
  );
  expect(await post(sender, { port: 443 }, 'its partner')).toEqual(outcome(null, 'dns'));
  expect(charged).toEqual([['its partner', 12, 'failed']]);
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

describe('an unreachable receiver', () => {
  it('is reported when nothing listens', async () => {
    const target = await receiver();
    await undoing.pop()?.();
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'connect'));
  });

  it('is reported when it speaks no TLS', async () => {
    const target = await startRawReceiver((socket) => void socket.end('HTTP/1.1 204 No Content\r\n\r\n'));
    undoing.push(target.close);
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'tls'));
  });

  it('is reported when it closes the connection before TLS is agreed', async () => {
    const target = await startRawReceiver(
      (socket) => void socket.once('data', () => socket.resetAndDestroy()),
    );
    undoing.push(target.close);
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'tls'));
  });

  test.each([
    ['closes the connection', (socket: Socket) => void socket.once('data', () => socket.end())],
    [
      'wants to be sent what it was sent',
      (socket: Socket) => void socket.write('HTTP/1.1 100 Continue\r\n\r\n'),
    ],
    ['speaks something else', (socket: Socket) => void socket.end('220 mail.example ESMTP\r\n')],
    [
      'changes the protocol',
      (socket: Socket) =>
        void socket.once('data', () =>
          socket.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
        ),
    ],
    [
      'breaks off within its headers',
      (socket: Socket) => void socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-le')),
    ],
    [
      'sends headers without end',
      (socket: Socket) => drip(socket, `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`, 1),
    ],
  ])('is reported for %s', async (_, treat) => {
    const target = await raw(treat);
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'connect'));
  });
});

it('a receiver that resets the connection is reported as unreachable', async () => {
  const target = await startRawReceiver((socket) => void socket.once('data', () => socket.resetAndDestroy()));
  undoing.push(target.close);
  const url = `http://${NAME}:${target.port}/`;
  const sent = senderTo(target).send({ url, headers: HEADERS, body: BODY, partner_id: 'a partner' });
  expect(await sent).toEqual(outcome(null, 'connect'));
});

/** Runs the attempt with a limit of 400 ms; it may take at most a second longer. */
const inTime = async (sender: Sender, target: { port: number }) => {
  const began = performance.now();
  const result = await post(sender, target);
  expect(performance.now() - began).toBeLessThan(LIMITS.totalMs + 1_000);
  return result;
};

describe('a slow receiver', () => {
  test.each<[string, ((socket: Socket) => void) | null]>([
    ['to agree on TLS', null],
    ['to answer', () => undefined],
    [
      'with its headers',
      (socket: Socket) => {
        socket.write('HTTP/1.1 200 OK\r\n');
        drip(socket, 'x: y\r\n', 20);
      },
    ],
    ['with its status line', (socket: Socket) => void socket.write('HTTP/1.1 20')],
    ['with a final head after a few hints', (socket: Socket) => drip(socket, HINT, LIMITS.totalMs / 4)],
  ])('%s has timed out, and its connection is closed', async (_, treat) => {
    const sockets: Socket[] = [];
    const target = treat
      ? await raw((socket) => {
          sockets.push(socket);
          treat(socket);
        })
      : await startRawReceiver(() => undefined);
    undoing.push(target.close);
    const sender = senderTo(target);
    expect(await inTime(sender, target)).toEqual(outcome(null, 'timeout'));
    for (const socket of sockets) {
      socket.resume();
      await eventually('the connection is closed', () => socket.destroyed);
    }
  });

  it('times out during the TLS handshake by the limit of the whole attempt where that is shorter', async () => {
    const target = await startRawReceiver(() => undefined);
    undoing.push(target.close);
    const sender = senderTo(target, { limits: { ...LIMITS, connectMs: 2_500 } });
    expect(await inTime(sender, target)).toEqual(outcome(null, 'timeout'));
  });

  it('times out while it reads the body', async () => {
    const target = await raw((socket) => void socket.pause());
    const sent = senderTo(target).send({
      url: urlOf(target),
      headers: HEADERS,
      partner_id: 'a partner',
      body: Buffer.alloc(32 * 1_048_576),
    });
    expect(await sent).toEqual(outcome(null, 'timeout'));
  });

  it('does not keep another attempt from timing out', async () => {
    const target = await raw(() => undefined);
    const sender = senderTo(target);
    const outcomes = await Promise.all(Array.from({ length: 40 }, () => inTime(sender, target)));
    expect(outcomes).toEqual(outcomes.map(() => outcome(null, 'timeout')));
  });

  it('does not keep the sender from closing after its time limit', async () => {
    const target = await raw(() => undefined);
    const sender = senderTo(target);
    const pending = post(sender, target);
    await eventually('it is connected', () => target.connections());
    await sender.close();
    expect(await pending).toEqual(outcome(null, 'timeout'));
  });
});

describe('a receiver that floods the sender before its final response', () => {
  const generous = { limits: { totalMs: 8_000, dnsMs: 1_000, connectMs: 3_000 } };

  test.each([
    ['interim answers', '', HINT],
    ['the reason phrase of a status line', 'HTTP/1.1 200 ', 'x'],
    ['the reason phrase of an interim answer', 'HTTP/1.1 103 ', 'x'],
  ])('with %s is cut off after a bounded number of bytes, as `connect`', async (_, start, piece) => {
    let written = () => 0;
    const target = await raw((socket) => {
      socket.once('data', () => {
        socket.write(start);
        written = flood(socket, piece);
      });
    });
    expect(await post(senderTo(target, generous), target)).toEqual(outcome(null, 'connect'));
    // Mostly what the kernel's socket buffers hold; a flood of the whole eight seconds has hundreds of megabytes.
    expect(written()).toBeLessThan(20_000_000);
  });

  test.each([
    [8, outcome(204, null)],
    [9, outcome(null, 'connect')],
  ])('with %i interim responses before a 204 ends as %o', async (hints, expected) => {
    const target = await raw((socket) => {
      socket.once('data', () => socket.write(`${HINT.repeat(hints)}HTTP/1.1 204 No Content\r\n\r\n`));
    });
    expect(await post(senderTo(target), target)).toEqual(expected);
  });

  it('does not delay an attempt to another endpoint', async () => {
    const flooding = await raw((socket) => void socket.once('data', () => flood(socket, HINT)));
    const other = await receiver();
    const policy = {
      allowHttp: true,
      allowPorts: [flooding.port, other.port],
      allowNetworks: ['127.0.0.0/8'],
      ownOrigins: [],
    };
    const sender = createSender({
      policy,
      clock: { now: () => NOON },
      resolver: RESOLVER,
      extraCa: authority.cert,
      ...generous,
    });
    undoing.push(sender.close);
    const order: string[] = [];
    await Promise.all([
      ...[1, 2, 3, 4].map(() => post(sender, flooding).then(() => order.push('flooding'))),
      post(sender, other).then(({ http_status }) => order.push(`other ${http_status}`)),
    ]);
    expect(order).toContain('other 204');
    expect(order).toHaveLength(5);
  });

  it('may send 16 KiB of headers and a long body after them', async () => {
    const target = await receiver(
      (_request, response) =>
        void response.writeHead(200, { 'x-long': 'y'.repeat(16_000) }).end('z'.repeat(300_000)),
    );
    const sender = senderTo(target);
    for (const _ of [1, 2, 3]) expect(await post(sender, target)).toEqual(outcome(200, null));
  });
});

describe('a slow DNS server', () => {
  it('is reported as a DNS failure', async () => {
    const target = await receiver();
    const resolver = { ...RESOLVER, resolve6: () => new Promise<string[]>(() => undefined) };
    expect(await inTime(senderTo(target, { resolver }), target)).toEqual(outcome(null, 'dns'));
    expect(await target.connections()).toBe(0);
  });
});

describe('a response body', () => {
  const head = (status: string) => `HTTP/1.1 ${status}\r\ncontent-type: text/plain\r\n`;

  test.each([
    ['never comes', (socket: Socket) => void socket.write(`${head('200 OK')}content-length: 5\r\n\r\n`)],
    [
      'drips',
      (socket: Socket) => {
        socket.write(`${head('200 OK')}transfer-encoding: chunked\r\n\r\n`);
        drip(socket, '1\r\nx\r\n', 20);
      },
    ],
    [
      'never ends',
      (socket: Socket) => {
        socket.write(`${head('200 OK')}\r\n`);
        drip(socket, 'x'.repeat(8_192), 1);
      },
    ],
    ['breaks off', (socket: Socket) => void socket.end(`${head('200 OK')}content-length: 5\r\n\r\nx`)],
    [
      'is broken',
      (socket: Socket) =>
        void socket.write(`${head('200 OK')}transfer-encoding: chunked\r\n\r\nnonsense\r\n`),
    ],
  ])('that %s does not change the status and is not read on', async (_, treat) => {
    const sockets: Socket[] = [];
    const target = await raw((socket) => {
      sockets.push(socket);
      socket.once('data', () => treat(socket));
    });
    expect(await inTime(senderTo(target), target)).toEqual(outcome(200, null));
    for (const socket of sockets) await eventually('the connection is closed', () => socket.destroyed);
  });

  it('of a failure is not read on', async () => {
    const target = await raw((socket) => {
      socket.once('data', () => socket.write(`${head('500 Oops')}content-length: 5\r\n\r\n`));
    });
    expect(await inTime(senderTo(target), target)).toEqual(outcome(500, 'http_status'));
  });

  it('is read for a few kilobytes at most', async () => {
    let written = 0;
    const target = await raw((socket) => {
      socket.once('data', () => {
        socket.write(`${head('200 OK')}content-length: 1000000000000\r\n\r\n`);
        const more = (): void => {
          while (!socket.destroyed && socket.write(Buffer.alloc(65_536))) written += 65_536;
        };
        socket.on('drain', more);
        more();
      });
    });
    const sender = senderTo(target, { limits: { totalMs: 5_000, dnsMs: 1_000, connectMs: 3_000 } });
    const began = performance.now();
    expect(await post(sender, target)).toEqual(outcome(200, null));
    // Less than a body may take and than the buffers on the way hold.
    expect(performance.now() - began).toBeLessThan(900);
    expect(written).toBeLessThan(20_000_000);
  });
});

describe('an attempt', () => {
  test.each([
    '',
    'nonsense',
    'https://',
    'ftp://hooks.example/',
    'https://hooks.example:1/',
    'https://[::1]/',
  ])('does not throw for %j', async (url) => {
    const sender = senderTo({ port: 9 });
    expect(await sender.send({ url, headers: HEADERS, body: BODY, partner_id: 'a partner' })).toEqual(
      outcome(null, 'blocked_address'),
    );
  });

  it('does not throw for headers that cannot be sent', async () => {
    const target = await receiver();
    const sent = senderTo(target).send({
      url: urlOf(target),
      headers: { 'webhook-id': 'a\nb' },
      body: BODY,
      partner_id: 'a partner',
    });
    expect(await sent).toMatchObject({ http_status: null });
    expect(target.requests).toEqual([]);
  });
});
