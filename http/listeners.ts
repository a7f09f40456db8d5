import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * Connections that are accepted in a turn of the event loop: libuv accepts one of each listening socket. Those of an address that has
 * all that it may are accepted too, before they are closed.
 */
const LISTENERS = 64;

/** Options of the sockets that Node's HTTP server accepts itself. */
const LIKE_HTTP = { allowHalfOpen: true, noDelay: true };

export interface Listeners {
  /** Accepts no more, and waits for the connections that the server ends. */
  close(): Promise<void>;
}

/**
 * Lets a server listen on several sockets of one port. With one, hundreds of connections whose requests fill the turns of the event
 * loop would keep each new connection waiting for seconds.
 * @throws where another program listens at the port (`EADDRINUSE`)
 */
export const listenOnSeveral = async (
  app: FastifyInstance,
  host: string,
  port: number,
): Promise<Listeners> => {
  await findFree(host, port);
  const at = { host, port, reusePort: true };
  await app.listen(at);
  const { port: found } = app.server.address() as AddressInfo;
  const further = Array.from({ length: LISTENERS - 1 }, () =>
    createServer(LIKE_HTTP, (socket) => app.server.emit('connection', socket)),
  );
  await Promise.all(further.map((server) => listenAt(server, { ...at, port: found })));
  return { close: async () => void (await Promise.all(further.map(closed))) };
};

/** A port that may be used again by the same user would not be found taken by another process of this program. */
const findFree = async (host: string, port: number): Promise<void> => {
  const server = createServer();
  await listenAt(server, { host, port });
  await closed(server);
};

const listenAt = async (server: Server, at: { host: string; port: number; reusePort?: boolean }) => {
  server.listen(at);
  await once(server, 'listening');
};

const closed = async (server: Server): Promise<void> => {
  server.close();
  await once(server, 'close');
};
