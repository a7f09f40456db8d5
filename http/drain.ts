import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** So long a closing server waits for the rest of requests that have begun to arrive. */
const ARRIVAL_MS = 2_000;
/** Time after its last request from which a connection may be closed for another. */
const IDLE_MS = 5_000;
/** Least time between two times that idle connections are closed for others. */
const CLOSED_EVERY_MS = 1_000;

/** What a drain need not wait for: connections on which no whole request has come. */
export interface Connections {
  /** Notes the answer that a connection waits for since `at`, monotonic milliseconds. */
  answering(response: ServerResponse, at: number): void;
  /** Cuts, after a short time, those that still have not sent a whole request. */
  cutSilent(): void;
}

/**
 * Watches a server's connections. Node cuts only those that are idle between two requests when it closes, and
 * then enforces no time-out any more: one that never sends anything would hold the shutdown up for ever. When a connection is refused
 * because there are as many as there may be, those that have been idle for some seconds are closed: callers of two networks could keep
 * all others out by one request a minute on each.
 */
export function watchConnections(server: Server): Connections {
  const open = new Set<Socket>();
  const latest = new WeakMap<Socket, { readonly response: ServerResponse; readonly at: number }>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  const awaitsAnswer = (socket: Socket): boolean => {
    const response = latest.get(socket)?.response;
    return response !== undefined && !response.writableFinished && response.req.complete;
  };
  const isIdle = (socket: Socket, since: number): boolean => {
    const last = latest.get(socket);
    return last?.response.writableFinished === true && last.at <= since;
  };
  let closedAt = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    const now = performance.now();
    if (now - closedAt < CLOSED_EVERY_MS) return;
    closedAt = now;
    for (const socket of open) if (isIdle(socket, now - IDLE_MS)) socket.destroy();
  });
  return {
    answering: (response, at) => void latest.set(response.req.socket, { response, at }),
    cutSilent: () => {
      const cut = () => {
        for (const socket of open) if (!awaitsAnswer(socket)) socket.destroy();
      };
      setTimeout(cut, ARRIVAL_MS).unref();
    },
  };
}
