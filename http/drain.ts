import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/** So long a closing server waits for the rest of requests that have begun to arrive. */
const ARRIVAL_MS = 2_000;
/** Time from which a connection that awaits no answer, or takes none, may be closed for another. */
const IDLE_MS = 5_000;
/** Time in which a proxy's next request on a connection may already be under way: it would fail, and most are not sent again. */
const JUST_ANSWERED_MS = 1_000;
/** Least time between two times that idle connections are closed for others. */
const CLOSED_EVERY_MS = 1_000;

/** The connections that wait for no answer. */
export interface Connections {
  /** Cuts, after a short time, those that still have not sent a whole request: a drain need not wait for them. */
  cutSilent(): void;
  /** Whether a whole request waits for its answer. False where bytes of answers wait unread, and none was read to its end for five seconds. */
  awaitsAnswer(socket: Socket): boolean;
  /** Whether its last request was answered within a second, and none has come since. */
  isJustAnswered(socket: Socket): boolean;
  /**
   * Closes those of `which` that have been idle for some seconds, for others: callers of two networks could keep all others out by one
   * request a minute on each.
   */
  closeIdle(which: (socket: Socket) => boolean): void;
}

interface Connection {
  /** In the order in which they came. */
  readonly unanswered: Set<IncomingMessage>;
  /** When an answer was taken last, or the first request after it came, or the connection; monotonic milliseconds. */
  at: number;
}

/**
 * Watches a server's connections. Node cuts only those that are idle between two requests when it closes, and
 * then enforces no time-out any more: one that never sends anything would hold the shutdown up for ever.
 */
export function watchConnections(server: Server): Connections {
  const open = new Map<Socket, Connection>();
  server.on('connection', (socket: Socket) => {
    open.set(socket, { unanswered: new Set(), at: performance.now() });
    socket.once('close', () => open.delete(socket));
  });
  // Not a hook of the routes: not every request reaches one.
  server.on('request', (request, response) => {
    const connection = open.get(request.socket);
    if (connection === undefined) return;
    // Not of each request: one that takes no answer may ask again and again.
    if (connection.unanswered.size === 0) connection.at = performance.now();
    connection.unanswered.add(request);
    response.once('finish', () => {
      connection.unanswered.delete(request);
      connection.at = performance.now();
    });
  });
  let closedAt = Number.NEGATIVE_INFINITY;
  return {
    awaitsAnswer: (socket) => {
      const connection = open.get(socket);
      if (connection === undefined || !awaitsAnswer(connection)) return false;
      return socket.writableLength === 0 || connection.at > performance.now() - IDLE_MS;
    },
    isJustAnswered: (socket) => {
      const connection = open.get(socket);
      if (connection === undefined || connection.unanswered.size > 0) return false;
      return connection.at > performance.now() - JUST_ANSWERED_MS;
    },
    closeIdle: (which) => {
      const now = performance.now();
      if (now - closedAt < CLOSED_EVERY_MS) return;
      closedAt = now;
      for (const [socket, connection] of open) {
        if (connection.at <= now - IDLE_MS && !awaitsAnswer(connection) && which(socket)) socket.destroy();
      }
    },
    cutSilent: () => {
      const cut = () => {
        for (const [socket, connection] of open) if (!awaitsAnswer(connection)) socket.destroy();
      };
      setTimeout(cut, ARRIVAL_MS).unref();
    },
  };
}

/** A further request may not have come whole. */
const awaitsAnswer = ({ unanswered }: Connection): boolean => {
  const [first] = unanswered;
  return first?.complete === true;
};
