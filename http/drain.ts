import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** So long a closing server waits for the rest of requests that have begun to arrive. */
const ARRIVAL_MS = 2_000;

/** What a drain need not wait for: connections on which no whole request has come. */
export interface Connections {
  /** Notes the answer that a connection waits for now. */
  answering(response: ServerResponse): void;
  /** Cuts, after a short time, those that still have not sent a whole request. */
  cutSilent(): void;
}

/**
 * Watches a server's connections. Node cuts only those that are idle between two requests when it closes, and
 * then enforces no time-out any more: one that never sends anything would hold the shutdown up for ever.
 */
export function watchConnections(server: Server): Connections {
  const open = new Set<Socket>();
  const latest = new WeakMap<Socket, ServerResponse>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  const awaitsAnswer = (socket: Socket): boolean => {
    const response = latest.get(socket);
    return response !== undefined && !response.writableFinished && response.req.complete;
  };
  return {
    answering: (response) => void latest.set(response.req.socket, response),
    cutSilent: () => {
      const cut = () => {
        for (const socket of open) if (!awaitsAnswer(socket)) socket.destroy();
      };
      setTimeout(cut, ARRIVAL_MS).unref();
    },
  };
}
