import { createSocket, type Socket } from 'node:dgram';
import { getServers } from 'node:dns';
import { once } from 'node:events';
import { type AddressInfo, createServer, isIP } from 'node:net';
import pRetry from 'p-retry';

/** What resolvers ask for (EDNS), so that an answer comes in one piece. */
const MAX_ANSWER_BYTES = 1_232;
/** Longer than a resolver waits for an answer. */
const IDLE_MS = 10_000;
/** After the answers to all questions: a resolver asks again at once, or never. */
const ANSWERED_MS = 500;
const LOOPBACK = '127.0.0.1';
/** A port that is free for TCP may be taken for UDP. */
const PORTS = { retries: 5, minTimeout: 0 } as const;

/**
 * Starts relays to DNS servers by UDP alone, for as long as the process runs. Node's resolver repeats the question of a truncated
 * answer over TCP, and has no option against it: the owner of a name can answer with 64 KiB of records, which take the event loop up
 * to 22 ms. Over a relay such an answer is a failure.
 * @param servers addresses, each with a port if that is not 53; none: the system's
 * @returns the relays' addresses, with ports
 */
export const startDnsRelays = async (servers: readonly string[]): Promise<string[]> =>
  Promise.all(
    (servers.length > 0 ? servers : getServers()).map((server) => pRetry(() => relayTo(server), PORTS)),
  );

/** Asks the DNS server by the socket that there is for one socket of a resolver. */
type Ask = (question: Buffer) => void;

const relayTo = async (server: string): Promise<string> => {
  // It takes the port for TCP as well, so that no other program gets what is asked again.
  const refusing = createServer((socket) => socket.destroy()).listen(0, LOOPBACK);
  await once(refusing.unref(), 'listening');
  const { port } = refusing.address() as AddressInfo;
  const inside = createSocket('udp4')
    .unref()
    .on('error', () => undefined);
  inside.bind(port, LOOPBACK);
  await once(inside, 'listening').catch((error: unknown) => {
    refusing.close();
    throw error;
  });

  const outside = new Map<number, Promise<Ask>>();
  const open = async (client: number): Promise<Ask> => {
    const socket = await connectedTo(server);
    const unanswered = new Set<number>();
    let closing: NodeJS.Timeout | undefined;
    const keep = (): void => {
      clearTimeout(closing);
      closing = setTimeout(() => socket.close(), unanswered.size > 0 ? IDLE_MS : ANSWERED_MS).unref();
    };
    socket.on('close', () => outside.delete(client));
    socket.on('message', (answer) => {
      unanswered.delete(idOf(answer));
      keep();
      if (answer.length <= MAX_ANSWER_BYTES) inside.send(answer, client, LOOPBACK);
    });
    return (question) => {
      unanswered.add(idOf(question));
      keep();
      socket.send(question);
    };
  };

  inside.on('message', (question, { port: client }) => {
    const socket = outside.get(client) ?? open(client);
    outside.set(client, socket);
    // A question that is lost is asked again.
    socket.then(
      (ask) => ask(question),
      () => outside.delete(client),
    );
  });
  return `${LOOPBACK}:${port}`;
};

/** The number by which a resolver knows an answer to its question (RFC 1035, 4.1.1). */
const idOf = (message: Buffer): number => (message.length < 2 ? -1 : message.readUInt16BE(0));

/** Returns a socket that takes datagrams of this server only. */
const connectedTo = async (server: string): Promise<Socket> => {
  const { hostname, port } = isIP(server) > 0 ? { hostname: server, port: '' } : new URL(`dns://${server}`);
  const address = hostname.replace(/^\[(.*)\]$/, '$1');
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4').unref();
  socket.connect(Number(port || 53), address);
  await once(socket, 'connect').catch((error: unknown) => {
    socket.close();
    throw error;
  });
  return socket.on('error', () => undefined);
};
