/** The server's connections: one whose answer is not taken is cut, and so is one that a shutdown would wait for. */
import type { Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

/** A shorter answer lies in the receive buffer of the caller's system, which then has taken it. */
const LONG_BYTES = 65_536;
/** So long a closing server waits for the rest of requests that have begun to arrive, and between its looks at them. */
const ARRIVAL_MS = 2_000;

/**
 * Cuts the connection of an answer that its caller does not take within `writeMs`: it is unsent, or has been sent and the caller,
 * whose system may not have acknowledged it, has sent nothing since.
 */
export function limitWriting(socket: Socket, response: ServerResponse, bytes: number, writeMs: number): void {
  // An injected request has no connection.
  if (!(socket instanceof Socket)) return;
  // Without a socket it waits behind the answer to an earlier request on the connection.
  const waits = response.socket === null || socket.writableLength > 0;
  if (socket.destroyed || (bytes < LONG_BYTES && !waits)) return;
  const { bytesRead } = socket;
  const timer = setTimeout(() => {
    // The kernel would keep megabytes of the answer, and the connection, for minutes after a normal close.
    if (!response.writableFinished || socket.bytesRead === bytesRead) socket.resetAndDestroy();
  }, writeMs);
  timer.unref();
}

/**
 * Returns a function that cuts, two seconds after it is called and then repeatedly, the connections that await no answer to a whole
 * request. Node closes only those that are idle between two requests when a server closes, and enforces no time-out any more.
 */
export function watchConnections(server: Server): () => void {
  /** The answer under way to the last request of each connection; null: none. */
  const open = new Map<Socket, ServerResponse | null>();
  server.on('connection', (socket: Socket) => {
    open.set(socket, null);
    socket.once('close', () => open.delete(socket));
  });
  // Not a hook of the routes: not every request reaches one.
  server.on('request', ({ socket }, response) => {
    if (socket.destroyed) return;
    open.set(socket, response);
    // Kept until then alone: an idle connection would keep a head of 16 KB.
    response.once('close', () => {
      if (open.get(socket) === response) open.set(socket, null);
    });
  });
  const cutSilent = (): void => {
    for (const [socket, response] of open) if (response === null || isSilent(response)) socket.destroy();
  };
  return () => void setInterval(cutSilent, ARRIVAL_MS).unref();
}

/** One without a socket, though not whole, waits behind the answer to an earlier request. */
const isSilent = ({ req, socket }: ServerResponse): boolean => !req.complete && socket !== null;
