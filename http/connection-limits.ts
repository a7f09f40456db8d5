import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Connections } from './drain.ts';
import { type CallerLimits, type CallerNetworks, createHeldByCallers } from './held-by-callers.ts';

export interface ConnectionLimits extends CallerLimits {
  /** Open ones of this process. */
  readonly inAll: number;
  /** Returns the caller at an address; null: not counted, such as a proxy that all callers share. */
  readonly callerAt: (address: string) => CallerNetworks | null;
}

/** What is known of connections and their requests. */
export interface ConnectionInfo extends Pick<Connections, 'awaitsAnswer' | 'isJustAnswered' | 'closeIdle'> {
  /** Returns the network of a request's caller, whose connection may be that of a proxy; empty: it is not known. */
  networkOf(request: IncomingMessage): string;
}

/** Networks, and connections of each, that are looked through for one to close. */
const NETWORKS_LOOKED_THROUGH = 4;
const LOOKED_THROUGH = 64;

/** Connections by network. */
const createByNetwork = (isInUse: (socket: Socket) => boolean) => {
  const sockets = new Map<string, Set<Socket>>();

  const most = (except: ReadonlySet<Set<Socket>>): Set<Socket> => {
    let found = new Set<Socket>();
    for (const own of sockets.values()) if (own.size > found.size && !except.has(own)) found = own;
    return found;
  };

  const closeOneOf = (own: Set<Socket>): boolean => {
    let left = LOOKED_THROUGH;
    for (const socket of own) {
      own.delete(socket);
      if (!isInUse(socket)) {
        socket.destroy();
        return true;
      }
      own.add(socket);
      left -= 1;
      if (left === 0) return false;
    }
    return false;
  };

  return {
    countOf: (network: string): number => sockets.get(network)?.size ?? 0,
    add: (network: string, socket: Socket): void => {
      sockets.set(network, (sockets.get(network) ?? new Set()).add(socket));
    },
    delete: (network: string, socket: Socket): void => {
      const own = sockets.get(network);
      own?.delete(socket);
      if (own?.size === 0) sockets.delete(network);
    },
    /** Closes one that is not in use, of the networks with most that have over one more. @returns whether there was one */
    closeOneFor: (fewer: number): boolean => {
      const passed = new Set<Set<Socket>>();
      while (passed.size < NETWORKS_LOOKED_THROUGH) {
        const own = most(passed);
        if (own.size <= fewer + 1) return false;
        if (closeOneOf(own)) return true;
        passed.add(own);
      }
      return false;
    },
  };
};

/**
 * Closes connections beyond the limits at once, before anything is read of them. While the process has as many as it may, a new
 * connection closes one of a network that has most, if its own network has fewer: one that awaits no answer, and where it is a proxy's
 * has had none for a second. If there is none, idle connections of networks with as many as its own are closed for the next. One of a
 * proxy is of the network of its last request. Counted here, because the server itself counts those of one of its listeners alone.
 */
export function limitConnections(
  server: Server,
  limits: ConnectionLimits,
  connections: ConnectionInfo,
): void {
  let inAll = 0;
  const open = createHeldByCallers(limits);
  const ofProxies = new WeakSet<Socket>();
  const byNetwork = createByNetwork(
    (socket) =>
      connections.awaitsAnswer(socket) || (ofProxies.has(socket) && connections.isJustAnswered(socket)),
  );
  const networkOf = new WeakMap<Socket, string>();
  const assignNetwork = (network: string | null, socket: Socket): void => {
    const before = networkOf.get(socket);
    if (before === network) return;
    if (before !== undefined) byNetwork.delete(before, socket);
    if (!network) return void networkOf.delete(socket);
    byNetwork.add(network, socket);
    networkOf.set(socket, network);
  };

  const hasRoom = (caller: CallerNetworks | null): boolean => {
    if (inAll < limits.inAll) return true;
    const own = caller === null ? 0 : byNetwork.countOf(caller.network);
    if (byNetwork.closeOneFor(own)) return true;
    connections.closeIdle((socket) => {
      const network = networkOf.get(socket);
      return network === undefined || byNetwork.countOf(network) >= own;
    });
    return false;
  };

  server.prependListener('connection', (socket: Socket) => {
    const caller = limits.callerAt(socket.remoteAddress ?? '');
    if (caller !== null && !open.take(caller)) return void socket.destroy();
    if (!hasRoom(caller)) {
      if (caller !== null) open.giveBack(caller);
      return void socket.destroy();
    }
    inAll += 1;
    if (caller === null) ofProxies.add(socket);
    else assignNetwork(caller.network, socket);
    socket.once('close', () => {
      inAll -= 1;
      assignNetwork(null, socket);
      if (caller !== null) open.giveBack(caller);
    });
  });
  server.on('request', (request) => {
    const { socket } = request;
    if (ofProxies.has(socket) && !socket.destroyed) assignNetwork(connections.networkOf(request), socket);
  });
}
