import { once } from 'node:events';
import {
  type AddressInfo,
  connect,
  createServer,
  type NetConnectOpts,
  type Server,
  type Socket,
} from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** What a frozen proxy holds back: everything, or the server's answers alone. */
export type Frozen = 'everything' | 'answers';

export interface TcpProxy {
  /** Where it listens, on 127.0.0.1. */
  readonly port: number;
  /** Resets every connection; new ones are accepted as before. */
  cut(): void;
  /** Keeps connections open and holds back their bytes, as a hung server or network does. */
  freeze(what: Frozen): void;
  /** Ends a freeze: the bytes held back are sent on. */
  thaw(): void;
  /** Delays every chunk by this many milliseconds, both ways and in order; 0: no delay. */
  delay(milliseconds: number): void;
  /** Resets every connection and refuses new ones, until `accept`. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  /** The number of bytes that clients have sent, so that a test can wait for a request in progress. */
  sent(): number;
  /** The number of open connections. */
  connections(): number;
  close(): Promise<void>;
}

/** A TCP proxy before a server (or its Unix socket), to break connections as networks do. */
export const startTcpProxy = async (target: NetConnectOpts): Promise<TcpProxy> => {
  const pairs = new Set<{ client: Socket; server: Socket }>();
  let frozen: Frozen | null = null;
  let sent = 0;
  let delayMs = 0;

  const listener: Server = createServer({ pauseOnConnect: true }, (client) => {
    const server = connect(target);
    const pair = { client, server };
    pairs.add(pair);
    forward(
      client,
      server,
      () => pairs.delete(pair),
      () => delayMs,
    );
    forward(
      server,
      client,
      () => pairs.delete(pair),
      () => delayMs,
    );
    client.on('data', (chunk) => {
      sent += chunk.length;
    });
    flow(pair);
  });

  const flow = ({ client, server }: { client: Socket; server: Socket }): void => {
    if (frozen === 'everything') client.pause();
    else client.resume();
    if (frozen === null) server.resume();
    else server.pause();
  };

  const cut = (): void => {
    for (const { client, server } of pairs) {
      client.resetAndDestroy();
      server.destroy(); // a Unix socket cannot be reset
    }
    pairs.clear();
  };

  const listen = async (port: number): Promise<void> => {
    listener.listen(port, '127.0.0.1');
    await once(listener, 'listening');
  };

  const refuse = async (): Promise<void> => {
    const closed = listener.listening ? once(listener, 'close') : null;
    if (closed) listener.close();
    cut();
    await closed;
  };

  const set = (state: Frozen | null): void => {
    frozen = state;
    for (const pair of pairs) flow(pair);
  };

  await listen(0);
  const { port } = listener.address() as AddressInfo;
  return {
    port,
    cut,
    freeze: set,
    thaw: () => set(null),
    delay: (milliseconds) => {
      delayMs = milliseconds;
    },
    refuse,
    accept: () => listen(port),
    sent: () => sent,
    connections: () => pairs.size,
    close: refuse,
  };
};

/** Copies bytes by hand: `pipe` would resume a socket that is meant to stay silent. */
const forward = (from: Socket, to: Socket, gone: () => void, delayMs: () => number): void => {
  let waiting = 0;
  /** Timers may fire in another order than their delays end, so waiting chunks are sent in order of arrival. */
  let last: Promise<void> = Promise.resolve();
  const inOrder = (pass: () => void): void => {
    const delay = delayMs();
    if (delay === 0 && waiting === 0) {
      pass();
      return;
    }
    waiting += 1;
    last = Promise.all([last, pause(delay)]).then(() => {
      waiting -= 1;
      pass();
    });
  };
  from.on('data', (chunk) => inOrder(() => void (to.destroyed || to.write(chunk))));
  from.on('end', () => inOrder(() => void to.end()));
  from.on('error', () => undefined);
  from.on('close', () => {
    gone();
    inOrder(() => void to.destroy());
  });
};
