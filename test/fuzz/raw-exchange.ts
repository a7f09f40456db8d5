import { connect } from 'node:net';
import type { Answered } from './conformity.ts';

export interface RawRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

/** Bytes to a listening server, and the one answer that comes back; null where the bytes were two requests or none. */
export const exchange = async (port: number, request: RawRequest): Promise<Answered | null> => {
  const { method, target, headers, body } = request;
  const lines = [
    `${method} ${target} HTTP/1.1`,
    ...(headers.host === undefined ? ['Host: doorplate.test'] : []),
    'Connection: close',
    `Content-Length: ${body.length}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  const received = (await bytesBack(port, Buffer.concat([head, body]))).replace(CONTINUE, '');
  const end = received.indexOf('\r\n\r\n');
  const [start = '', ...fields] = received.slice(0, Math.max(0, end)).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(start)?.[1] ?? 0);
  // Broken HTTP is answered by the parser's own rules: raw-connections.test.ts has them.
  const broken = status === 0 || /not well-formed HTTP|too long/.test(received);
  if (broken) return null;
  const entries = fields.map((field) => {
    const colon = field.indexOf(':');
    return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()] as const;
  });
  const text = Buffer.from(received.slice(end + 4), 'latin1').toString('utf8');
  // Node's parser ignores further spaces between the target and the version.
  return { method, target: target.replace(/ +$/, ''), status, headers: Object.fromEntries(entries), text };
};

const bytesBack = (port: number, bytes: Buffer): Promise<string> =>
  new Promise((resolve) => {
    let received = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      received += text;
    });
    // A reset after the answer is how a cut connection looks from here.
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
  });
