import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Addresses of the requested family, the target of a CNAME, or texts; or the kind of failure. */
export type DnsAnswer = readonly string[] | 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED' | 'truncated' | 'silence';

export interface DnsServer {
  /** Asks this server alone. */
  readonly resolver: Resolver;
  /** The queries so far, as `A name`, `AAAA name` or `CNAME name`. */
  readonly questions: readonly string[];
  close(): void;
}

const HEADER_BYTES = 12;
/** A longer answer is truncated over UDP, and asked for again over TCP. */
const MAX_UDP_BYTES = 1_232;
export type DnsType = 'A' | 'AAAA' | 'CNAME' | 'TXT';
const NUMBERS: Readonly<Record<DnsType, number>> = { A: 1, CNAME: 5, TXT: 16, AAAA: 28 };
const TYPES = new Map(Object.entries(NUMBERS).map(([type, number]) => [number, type as DnsType]));
/** As bits of the header: response codes, or that the answer is truncated. */
const CODES = { SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5, truncated: 0x200 } as const;

/** Starts a DNS server (RFC 1035) on the loopback address that answers with `answer`. */
export const startDnsServer = async (
  answer: (type: DnsType, name: string) => DnsAnswer | Promise<DnsAnswer>,
): Promise<DnsServer> => {
  const questions: string[] = [];
  const answerTo = async (query: Buffer): Promise<((kind?: 'truncated') => Buffer) | null> => {
    const { name, type, end } = questionOf(query);
    questions.push(`${type} ${name}`);
    const found = await answer(type, name);
    return found === 'silence' ? null : (kind) => reply(query.subarray(0, end), type, kind ?? found);
  };
  const socket = createSocket('udp4');
  socket.on('message', async (query, from) => {
    const made = await answerTo(query);
    if (made === null) return;
    const whole = made();
    socket.send(whole.length > MAX_UDP_BYTES ? made('truncated') : whole, from.port, from.address);
  });
  // Messages over TCP begin with their length (RFC 1035, 4.2.2).
  const server = createServer((client) =>
    client.once('data', async (message) => {
      const whole = (await answerTo(message.subarray(2)))?.() ?? Buffer.alloc(0);
      const length = Buffer.alloc(2);
      length.writeUInt16BE(whole.length);
      client.end(Buffer.concat([length, whole]));
    }),
  );
  // TCP chooses the port, because many connections of a test run hold ports of TCP and few sockets one of UDP.
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  socket.bind((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'listening');
  const resolver = new Resolver({ timeout: 200, tries: 1 });
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  const close = (): void => {
    socket.close();
    server.close();
  };
  return { resolver, questions, close };
};

const questionOf = (query: Buffer): { name: string; type: DnsType; end: number } => {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = TYPES.get(query.readUInt16BE(at + 1));
  if (type === undefined) throw new Error('a question that tests do not ask');
  return { name: labels.join('.'), type, end: at + 5 };
};

const reply = (question: Buffer, type: DnsType, found: Exclude<DnsAnswer, 'silence'>): Buffer => {
  const values = typeof found === 'string' ? [] : found;
  const head = Buffer.from(question);
  // A response, recursion desired and available; one question, this many answers, nothing else.
  head.writeUInt16BE(0x8180 | (typeof found === 'string' ? CODES[found] : 0), 2);
  head.writeUInt16BE(values.length, 6);
  head.writeUInt32BE(0, 8);
  return Buffer.concat([head, ...values.map((value) => record(type, value))]);
};

/** A record of the name in the question, with a TTL of zero. */
const record = (type: DnsType, value: string): Buffer => {
  const data = dataOf(type, value);
  const head = Buffer.from([0xc0, HEADER_BYTES, 0, NUMBERS[type], 0, 1, 0, 0, 0, 0, 0, data.length]);
  return Buffer.concat([head, data]);
};

const dataOf = (type: DnsType, value: string): Buffer => {
  if (type === 'CNAME') return encodedName(value);
  if (type === 'TXT') return Buffer.concat([Buffer.of(value.length), Buffer.from(value, 'latin1')]);
  return Buffer.from(ipaddr.parse(value).toByteArray());
};

/** Labels, each behind its length, and the root. */
const encodedName = (name: string): Buffer => {
  const labels = name.replace(/\.$/, '').split('.');
  return Buffer.concat([
    ...labels.map((label) => Buffer.from([label.length, ...Buffer.from(label, 'latin1')])),
    Buffer.of(0),
  ]);
};
