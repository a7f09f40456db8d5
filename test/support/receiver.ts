import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import {
  type AddressInfo,
  connect,
  createServer as createNetServer,
  type Server,
  type Socket,
} from 'node:net';
import { createServer as createRawTlsServer, type TLSSocket, type TlsOptions } from 'node:tls';
import type { Certificate } from './certificates.ts';
import { eventually } from './eventually.ts';

/** A request as a webhook receiver got it. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** TLS: the requested server name, and whether an earlier session was resumed. */
  readonly servername: string | null;
  readonly resumed: boolean;
}

/** A server on the loopback address that counts its connections. */
export interface Listening {
  readonly port: number;
  /** Connections so far, including all that were opened before the call. */
  connections(): Promise<number>;
  /** Connections that are open now. */
  open(): number;
  close(): Promise<void>;
}

export interface Receiver extends Listening {
  readonly requests: readonly Received[];
}

interface Options {
  readonly tls?: Certificate & Pick<TlsOptions, 'ciphers' | 'dhparam' | 'ecdhCurve' | 'maxVersion'>;
  readonly host?: string;
  readonly port?: number;
}

/** Default: 204. A request that `answer` leaves open hangs. */
export const startReceiver = async ({
  answer = (_request, response) => void response.writeHead(204).end(),
  ...options
}: Options & { answer?: (request: Received, response: ServerResponse) => void } = {}): Promise<Receiver> => {
  const requests: Received[] = [];
  const server = options.tls ? createTlsServer(options.tls) : createServer();
  server.on('request', async (request, response) => {
    const socket = request.socket as Partial<TLSSocket>;
    const received = {
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(await request.toArray()),
      servername: socket.servername || null,
      resumed: socket.isSessionReused?.() ?? false,
    };
    requests.push(received);
    answer(received, response);
  });
  return { requests, ...(await listen(server, options)) };
};

/** Handles each connection with `treat` instead of HTTP. */
export const startRawReceiver = async (
  treat: (socket: Socket) => void,
  options: Options = {},
): Promise<Listening> => {
  const server = options.tls ? createRawTlsServer(options.tls) : createNetServer();
  server.on(options.tls ? 'secureConnection' : 'connection', (socket: Socket) => {
    socket.on('error', () => undefined);
    treat(socket);
  });
  return listen(server, options);
};

const listen = async (server: Server, { host = '127.0.0.1', port = 0 }: Options): Promise<Listening> => {
  const sockets = new Set<Socket>();
  let connections = 0;
  let ours = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => undefined);
  server.listen(port, host);
  await once(server, 'listening');
  const listening = (server.address() as AddressInfo).port;
  return {
    port: listening,
    connections: async () => {
      // Connections are accepted in order: once this one is, all before it are.
      ours += 1;
      const own = connect(listening, host);
      own.on('error', () => undefined);
      await once(own, 'connect');
      const address = own.localPort;
      await eventually(
        'the connection is accepted',
        async () => [...sockets].some(({ remotePort }) => remotePort === address),
        (accepted) => accepted,
      );
      own.destroy();
      return connections - ours;
    },
    open: () => sockets.size,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
};
