import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/** So long a closing server waits for the rest of requests that have begun to arrive. */
const ARRIVAL_MS = 2_000;
/** Time from which a connection that awaits no answer, or takes none, may be closed for another. */
const IDLE_MS = 5_000;
/** Least time between two times that idle connections are closed for others. */
const CLOSED_EVERY_MS = 1_000;

/** The connections that wait for no answer. */
export interface Connections {
  /** Cuts, after a short time, those that still have not sent a whole request: a drain need not wait for them. */
  cutSilent(): void;
  /** Whether a whole request waits for its answer: not one that has read none to its end for five seconds, though some was sent. */
  awaitsAnswer(socket: Socket): boolean;
  /**
   * Closes those of `which` that have been idle for some seconds, for others: callers of two networks could keep all others out by one
   * request a minute on each.
   */
  closeIdle(which: (socket: Socket) => boolean): void;
}

interface Latest {
  /** The last request, while it is unanswered. */
  readonly request: IncomingMessage | null;
  /** When an answer was taken last, or the first request after it came, or the connection; monotonic milliseconds. */
  readonly at: number;
}

/**
 * Watches a server's connections. Node cuts only those that are idle between two requests when it closes, and
 * then enforces no time-out any more: one that never sends anything would hold the shutdown up for ever.
 */
export function watchConnections(server: Server): Connections {
  const open = new Map<Socket, Latest>();
  server.on('connection', (socket: Socket) => {
    open.set(socket, { request: null, at: performance.now() });
    socket.once('close', () => open.delete(socket));
  });
  // Not a hook of the routes: not every request reaches one.
  server.on('request', (request, response) => {
    const { socket } = request;
    const before = open.get(socket);
    if (before === undefined) return;
    // Not of each request: one that takes no answer may ask again and again.
    open.set(socket, { request, at: before.request === null ? performance.now() : before.at });
    response.once('finish', () => {
      const latest = open.get(socket);
      if (latest === undefined) return;
      // Its head may have 16 KB, and the connection may stay.
      const next = latest.request === request ? null : latest.request;
      open.set(socket, { request: next, at: performance.now() });
    });
  });
  let closedAt = Number.NEGATIVE_INFINITY;
  return {
    awaitsAnswer: (socket) => {
      const latest = open.get(socket);
      if (latest === undefined || !awaitsAnswer(latest)) return false;
      return socket.writableLength === 0 || latest.at > performance.now() - IDLE_MS;
    },
    closeIdle: (which) => {
      const now = performance.now();
      if (now - closedAt < CLOSED_EVERY_MS) return;
      closedAt = now;
      for (const [socket, latest] of open) {
        if (latest.at <= now - IDLE_MS && !awaitsAnswer(latest) && which(socket)) socket.destroy();
      }
    },
    cutSilent: () => {
      const cut = () => {
        for (const [socket, latest] of open) if (!awaitsAnswer(latest)) socket.destroy();
      };
      setTimeout(cut, ARRIVAL_MS).unref();
    },
  };
}

const awaitsAnswer = ({ request }: Latest): boolean => request?.complete === true;
