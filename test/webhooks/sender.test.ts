import type { Socket } from 'node:net';
import { describe, expect, it, test } from 'vitest';
import type { Sender } from '../../processors/webhooks/delivery/sender.ts';
import { eventually } from '../support/eventually.ts';
import { startRawReceiver } from '../support/receiver.ts';
import {
  BODY,
  certificate,
  HEADERS,
  LIMITS,
  NAME,
  outcome,
  post,
  raw,
  receiver,
  senderTo,
  undoing,
  urlOf,
} from '../support/sending.ts';

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
    [204, outcome(204, null)],
    [299, outcome(299, null)],
    [300, outcome(300, 'redirect')],
    [301, outcome(301, 'redirect')],
    [308, outcome(308, 'redirect')],
    [400, outcome(400, 'http_status')],
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
    ['Sat, 14 Mar 2026 12:02:00 GMT', 120_000],
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

  it('may follow interim responses', async () => {
    const target = await receiver((_request, response) => {
      response.writeEarlyHints({ link: '</a>; rel=preload' });
      response.writeProcessing();
      response.writeHead(204).end();
    });
    expect(await post(senderTo(target), target)).toEqual(outcome(204, null));
  });
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
});

describe('a receiver that closes a kept-alive connection just as it is used', () => {
  const ACCEPTED = 'HTTP/1.1 204 No Content\r\n\r\n';
  /** Accepts the first request of a connection, and treats the second with `ending`. `refusing`: then also those of new ones. */
  const closing = async (tls: boolean, ending: (socket: Socket) => void, refusing = false) => {
    const counts = { requests: 0, endings: 0 };
    const started = await startRawReceiver(
      (socket) => {
        let isFirst = true;
        socket.on('data', (data) => {
          if (!data.includes('POST')) return;
          counts.requests += 1;
          if (isFirst && !(refusing && counts.endings > 0)) socket.write(ACCEPTED);
          else {
            counts.endings += 1;
            ending(socket);
          }
          isFirst = false;
        });
      },
      tls ? { tls: certificate } : {},
    );
    undoing.push(started.close);
    const sender = senderTo(started);
    const url = `${tls ? 'https' : 'http'}://${NAME}:${started.port}/`;
    /** Sends until a connection was reused. */
    const results = async () => {
      const all = [];
      while (counts.endings === 0) {
        all.push(await sender.send({ url, headers: HEADERS, body: BODY, partner_id: 'a partner' }));
        // undici reuses a connection one turn of the event loop later.
        await new Promise(setImmediate);
      }
      return all;
    };
    return { counts, results };
  };
  const ENDINGS: [string, boolean, (socket: Socket) => void][] = [
    ['ends a TLS connection', true, (socket) => socket.end()],
    ['resets a TLS connection', true, (socket) => socket.destroy()],
    ['ends a TCP connection', false, (socket) => socket.end()],
    ['resets a TCP connection', false, (socket) => socket.resetAndDestroy()],
  ];

  it.each(ENDINGS)('gets the request once more within the attempt where it %s', async (_, tls, ending) => {
    const { counts, results } = await closing(tls, ending);
    const all = await results();
    expect(all.length).toBeGreaterThan(1);
    expect(all).toEqual(all.map(() => outcome(204, null)));
    expect(counts).toEqual({ requests: all.length + 1, endings: 1 });
  });

  it.each(ENDINGS)('gets no third request where it %s again', async (_, tls, ending) => {
    const { counts, results } = await closing(tls, ending, true);
    const all = await results();
    expect(all.at(-1)).toEqual(outcome(null, 'connect'));
    expect(counts).toEqual({ requests: all.length + 1, endings: 2 });
  });

  it('gets nothing again once a byte of its answer has come', async () => {
    const { counts, results } = await closing(true, (socket) => socket.end('H'));
    const all = await results();
    expect(all.at(-1)).toEqual(outcome(null, 'connect'));
    expect(counts).toEqual({ requests: all.length, endings: 1 });
  });

  it('gets nothing again on a new connection', async () => {
    let requests = 0;
    const target = await raw((socket) => {
      socket.once('data', () => {
        requests += 1;
        socket.end();
      });
    });
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'connect'));
    expect(requests).toBe(1);
  });

  it('gets nothing again where it is silent', async () => {
    const { counts, results } = await closing(true, () => undefined);
    const all = await results();
    expect(all.at(-1)).toEqual(outcome(null, 'timeout'));
    expect(counts).toEqual({ requests: all.length, endings: 1 });
  });
});

describe('an unreachable receiver', () => {
  it('is reported when nothing listens', async () => {
    const target = await receiver();
    await undoing.pop()?.();
    expect(await post(senderTo(target), target)).toEqual(outcome(null, 'connect'));
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

describe('a receiver that resets the connection', () => {
  it.each([
    ['instead of an answer', '', outcome(null, 'connect')],
    ['within its headers', 'HTTP/1.1 200 OK\r\nconnection: close\r\nx-', outcome(null, 'connect')],
    ['within a body of known length', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nx', outcome(200, null)],
    ['within a body without one', 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nx', outcome(200, null)],
  ])('%s is reported like any broken connection', async (_, answer, expected) => {
    const target = await startRawReceiver(
      (socket) =>
        void socket.once('data', () =>
          socket.write(answer, () => setTimeout(() => socket.resetAndDestroy(), 50)),
        ),
    );
    undoing.push(target.close);
    const url = `http://${NAME}:${target.port}/`;
    const sender = senderTo(target);
    for (const _ of [1, 2, 3])
      expect(await sender.send({ url, headers: HEADERS, body: BODY, partner_id: 'a partner' })).toEqual(
        expected,
      );
  });
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
    const silent = () => new Promise<string[]>(() => undefined);
    const resolver = { resolve4: silent, resolve6: silent };
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

  it('is read for 64 KiB at most', async () => {
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

it("refuses its owner's active custom domain, and delivers to it for other partners", async () => {
  const target = await receiver();
  const sender = senderTo(target, {
    isOwnDomain: async (name, partner) => name === NAME && partner === 'owner',
  });
  expect(await post(sender, target, 'owner')).toEqual(outcome(null, 'own_origin'));
  expect(await target.connections()).toBe(0);
  expect(await post(sender, target, 'another partner')).toEqual(outcome(204, null));
});

it('times out without a warning of the process when the name took all of the time', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  const target = await receiver((_request, response) => void response.writeHead(200).end());
  const sender = senderTo(target, { limits: { totalMs: 0, dnsMs: 1_000, connectMs: 3_000 } });
  expect(await post(sender, target)).toEqual(outcome(null, 'timeout'));
  // A warning is printed in the next turn.
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', note);
  expect(warnings).toEqual([]);
});
