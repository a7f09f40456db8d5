import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, type RequestOptions, request } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestDns, type TestDns } from '../support/domains.ts';
import { eventually } from '../support/eventually.ts';
import type { Service } from '../support/service.ts';
import { startServiceOnDatabase } from '../support/service-on-database.ts';
import { describeWithProxies, type Edge, startEdge } from './edge.ts';

const NAME = 'doorplate.example';
const CUSTOM = 'visits.example.com';
const PAGE = 'https://www.example.com';
const SILENT = 500;
const SLOW = 200;
const LOOKUPS = 400;
const IN_FLIGHT = 4;
/** A neighbouring test may take the core during one comparison, so the best of this many counts. */
const COMPARISONS = 3;

describeWithProxies('the edge of deploy/edge, with HAProxy and Caddy before a started service', () => {
  let dns: TestDns;
  let service: Service;
  let edge: Edge;
  let key: string;
  let tracker: string;

  beforeAll(async () => {
    dns = await startTestDns();
    dns.says(CUSTOM, [NAME]);
    // The clients of this test have loopback addresses too, and must not count as proxies.
    const env = { PUBLIC_URL: `https://${NAME}`, DNS_SERVERS: dns.address, TRUSTED_PROXIES: '127.0.0.1/32' };
    service = await startServiceOnDatabase({ env });
    edge = await startEdge(service, NAME);
    key = (await service.newKey({ requests_per_second: 100_000 })).api_key;
    const body = { name: 'a site', origins: [PAGE] };
    const made = await service.call('POST', '/v1/trackers', { key, body });
    tracker = made.body.id;
  }, 60_000);
  afterAll(async () => {
    await edge?.stop();
    await service?.remove();
    dns?.close();
  });

  /** Sends a request through the edge from a loopback address. @returns the answer, read to its end */
  const ask = (from: string, host: string, options: RequestOptions, body = ''): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      // Caddy makes its authority during the test.
      const trust = host === NAME ? { ca: edge.ca } : { rejectUnauthorized: false };
      const to = { host: '127.0.0.1', port: edge.port, localAddress: from, servername: host, ...trust };
      const headers = { host, ...(options.headers as Record<string, string>) };
      const sent = request({ agent: false, ...to, ...options, headers }, (answer) => {
        answer.resume().on('end', () => resolve(answer));
      });
      sent.on('error', reject);
      sent.end(body);
    });
  const send = async (...request: Parameters<typeof ask>): Promise<number | undefined> =>
    (await ask(...request)).statusCode;

  const capture = (from: string, host: string, forged = '8.8.8.8') => {
    const claims = { 'x-forwarded-for': forged, forwarded: `for=${forged}`, 'x-edge-port': '1' };
    const headers = { origin: PAGE, 'content-type': 'text/plain', ...claims };
    const body = { tracker_id: tracker, token: randomUUID(), visit_id: randomUUID() };
    return send(from, host, { method: 'POST', path: '/tracking/collect', headers }, JSON.stringify(body));
  };

  /** Sends 30 captures at once, with another forged address each. @returns the statuses that came back */
  const captureOften = async (from: string, host: string): Promise<Set<number | undefined>> => {
    const sent = Array.from({ length: 30 }, (_, n) => capture(from, host, `8.8.8.${n}`));
    return new Set(await Promise.all(sent));
  };
  /** Of one visitor, ten captures a second are taken. */
  const SOME_REFUSED = new Set([204, 429]);

  it('hands on the address that a capture comes from, in place of what the client claims', async () => {
    expect(await captureOften('127.0.2.1', NAME)).toEqual(SOME_REFUSED);
    expect(await capture('127.0.2.2', NAME)).toBe(204);
  });

  it('serves an active custom domain with a certificate of its own, and hands on the address', async () => {
    await expect(capture('127.0.3.1', CUSTOM), 'nobody has claimed it').rejects.toThrow();
    const path = `/v1/trackers/${tracker}/domains`;
    const claimed = await service.call('POST', path, { key, body: { hostname: CUSTOM } });
    await eventually(
      'the domain is active',
      async () => (await service.call('GET', `${path}/${claimed.body.id}`, { key })).body.status,
      (status) => status === 'active',
    );
    const first = await eventually(
      'Caddy has fetched a certificate',
      () => capture('127.0.3.1', CUSTOM).catch(() => null),
      (answer) => answer !== null,
    );
    expect(first).toBe(204);
    expect(await captureOften('127.0.3.2', CUSTOM)).toEqual(SOME_REFUSED);
    expect(await capture('127.0.3.3', CUSTOM)).toBe(204);
    await expect(capture('127.0.3.4', 'unknown.example.com')).rejects.toThrow();
  });

  it('tells browsers to come by https alone, on answers of its own too', async () => {
    const policy = async (host: string, path: string, headers = {}) => {
      const answer = await ask('127.0.7.1', host, { path, headers });
      return [answer.statusCode, answer.headers['strict-transport-security']];
    };
    const long = { 'x-long': 'x'.repeat(15_500) };
    expect(await policy(NAME, '/dashboard/login')).toEqual([200, 'max-age=31536000']);
    expect(await policy(NAME, '/dashboard/login', long)).toEqual([431, 'max-age=31536000']);
    expect(await policy(CUSTOM, '/nothing')).toEqual([404, 'max-age=31536000']);
  });

  it('refuses broken framing and long heads before they reach the service', async () => {
    const answerTo = async (head: string): Promise<string> => {
      const socket = await openTls('127.0.4.1');
      socket.write(`POST /v1/lookup HTTP/1.1\r\nHost: ${NAME}\r\n${head}\r\n\r\n{}`);
      const [answer] = await once(socket, 'data');
      socket.destroy();
      return String(answer).split('\r\n', 1)[0] ?? '';
    };
    expect(await answerTo('Content-Length: 2\r\nContent-Length: 3')).toContain(' 400 ');
    expect(await answerTo('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity')).toContain(' 400 ');
    expect(await answerTo(`X-Long: ${'x'.repeat(15_500)}`)).toContain(' 431 ');
    expect(await answerTo('X-Many: x\r\n'.repeat(120).trim())).toContain(' 400 ');
  });

  it('keeps lookups as fast while another address is silent, slow and pipelines', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
    const headers = { authorization: `Bearer ${key}` };
    const options: RequestOptions = { path: '/v1/lookup?ip=8.8.8.8', headers, agent };
    await eventually(
      'the lookup has its result',
      async () => (await service.call('POST', '/v1/lookup', { key, body: { ip: '8.8.8.8' } })).status,
      (status) => status === 200,
    );
    const p95 = async (): Promise<number> => {
      const times: number[] = [];
      const client = async (): Promise<void> => {
        while (times.length < LOOKUPS) {
          const begun = performance.now();
          const status = await send('127.0.5.1', NAME, options);
          times.push(performance.now() - begun);
          expect(status).toBe(200);
        }
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, client));
      return times.toSorted((one, other) => one - other)[Math.floor(times.length * 0.95)] as number;
    };
    await p95();
    const compared: { atRest: number; attacked: number }[] = [];
    while (
      compared.length < COMPARISONS &&
      !compared.some(({ atRest, attacked }) => attacked <= 2 * atRest)
    ) {
      const atRest = await p95();
      const attack = await startAttack('127.0.6.1');
      const attacked = await p95();
      expect(attack.open()).toBeGreaterThan(SLOW);
      expect(attack.pipelined()).toBeGreaterThan(0);
      attack.stop();
      compared.push({ atRest, attacked });
    }
    agent.destroy();
    expect(
      compared.some(({ atRest, attacked }) => attacked <= 2 * atRest),
      JSON.stringify(compared),
    ).toBe(true);
  }, 40_000);

  const openTls = async (from: string): Promise<TLSSocket> => {
    const socket = connectTls({
      host: '127.0.0.1',
      port: edge.port,
      localAddress: from,
      servername: NAME,
      ca: edge.ca,
    } as object);
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    return socket;
  };

  /** Opens silent connections, half of them with TLS, slow bodies, and one connection that pipelines without waiting. */
  const startAttack = async (from: string) => {
    const silent = Array.from({ length: SILENT / 2 }, (): Socket => {
      const to = { host: '127.0.0.1', port: edge.port, localAddress: from };
      return connectTcp(to).on('error', () => undefined);
    });
    const opened: TLSSocket[] = [];
    while (opened.length < SILENT / 2 + SLOW) {
      opened.push(...(await Promise.all(Array.from({ length: 25 }, () => openTls(from)))));
    }
    const slow = opened.slice(-SLOW);
    const head = `POST /tracking/collect HTTP/1.1\r\nHost: ${NAME}\r\nContent-Length: 4000\r\n\r\n`;
    for (const socket of slow) socket.write(head);
    const dribble = setInterval(() => {
      for (const socket of slow) if (socket.writable) socket.write('x');
    }, 500);
    let answers = 0;
    const pipelining = await openTls(from);
    pipelining.on('data', (text) => {
      answers += String(text).split('HTTP/1.1 ').length - 1;
    });
    const burst = `GET /healthz HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`.repeat(50);
    const pipeline = setInterval(() => {
      if (pipelining.writable && pipelining.writableLength === 0) pipelining.write(burst);
    }, 20);
    const sockets = [...silent, ...opened, pipelining];
    return {
      open: () => sockets.filter(({ destroyed }) => !destroyed).length,
      pipelined: () => answers,
      stop: () => {
        clearInterval(dribble);
        clearInterval(pipeline);
        for (const socket of sockets) socket.destroy();
      },
    };
  };
});
