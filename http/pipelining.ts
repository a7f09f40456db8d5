import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Requests of one connection that a turn of the event loop serves. Clients that wait for each response send one; a
 * connection that pipelines could bring 50,000 in a turn, and every other caller would wait for seconds.
 */
export const MAX_REQUESTS_PER_TURN = 128;

/**
 * Wraps a server's request listener: the last request that a connection may have in a turn is answered with
 * `Connection: close`, and those behind it are not served (RFC 9112 section 9.3.2: the client sends them again).
 */
export const limitPipelining = (serve: RequestListener): RequestListener => {
  let counts = new Map<Socket, number>();
  const closing = new WeakSet<Socket>();
  const endTurn = (): void => {
    counts = new Map();
  };
  return (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    if (closing.has(socket)) return;
    if (counts.size === 0) setImmediate(endTurn);
    const count = (counts.get(socket) ?? 0) + 1;
    counts.set(socket, count);
    if (count === MAX_REQUESTS_PER_TURN) {
      closing.add(socket);
      // Reading a body resumes the connection; nothing else does.
      socket.pause();
      response.shouldKeepAlive = false;
    }
    serve(request, response);
  };
};
