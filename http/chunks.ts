import type { IncomingMessage, RequestListener } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Chunks of request bodies that a connection may send within a turn of the event loop. Those of a client that sends a value of JSON
 * in each are fewer; 64 KiB that are read at once hold 10,900 of one byte, which take 24 ms.
 */
export const MAX_CHUNKS_A_TURN = 128;
/** Short chunks of a body. */
export const MAX_CHUNKS = 1_024;
/** A segment of any network that a body comes through has more bytes. */
const SHORT_BYTES = 512;

/** What Node's HTTP server keeps at a socket: callbacks by number. */
type HttpSocket = Socket & { parser?: Record<string, unknown> | null };

/** The callback that takes each chunk. */
const takesChunks = (callback: unknown): boolean =>
  typeof callback === 'function' && callback.name === 'parserOnBody';

/** Node hands over all chunks that it has read, also of a connection that is destroyed, unless nothing takes them. */
const ignoreChunks = (socket: HttpSocket): void => {
  const { parser } = socket;
  const [number, callback] = Object.entries(parser ?? {}).find(([, callback]) => takesChunks(callback)) ?? [];
  if (!parser || number === undefined) return;
  parser[number] = null;
  // Node uses the parser again for another connection.
  socket.once('close', () => {
    parser[number] = callback;
  });
};

/** Joins short chunks, each of which takes 430 bytes of memory beside its own. */
const joinShort = (push: (chunk: Buffer | null) => boolean): ((chunk: Buffer | null) => boolean) => {
  let joined: Buffer | null = null;
  let length = 0;
  const flush = (): void => {
    if (joined) push(joined.subarray(0, length));
    joined = null;
    length = 0;
  };
  return (chunk) => {
    const isShort = chunk !== null && chunk.length < SHORT_BYTES;
    if (!isShort || length + chunk.length > SHORT_BYTES) flush();
    if (!isShort) return push(chunk);
    joined ??= Buffer.allocUnsafe(SHORT_BYTES);
    length += chunk.copy(joined, length);
    return true;
  };
};

/** Counts the chunks of connections in a turn of the event loop. */
const createCount = (): ((socket: Socket) => number) => {
  const counts = new Map<Socket, number>();
  return (socket) => {
    if (counts.size === 0) setImmediate(() => counts.clear());
    const count = (counts.get(socket) ?? 0) + 1;
    counts.set(socket, count);
    return count;
  };
};

/**
 * Wraps a server's request listener: a connection that sends very many chunks at once, or a body of very many short ones, is
 * refused, because each costs the event loop as much as a long one. A part of a body with a length, which arrives in a segment of
 * its own, is a chunk here too. `refuse` ends the connection.
 */
export const limitChunks = (serve: RequestListener, refuse: (socket: Socket) => void): RequestListener => {
  const count = createCount();
  const limit = (request: IncomingMessage): void => {
    const { socket } = request;
    const push = joinShort(request.push.bind(request));
    let chunks = 0;
    request.push = (chunk: Buffer | null) => {
      if (chunk === null) return push(null);
      if (chunk.length < SHORT_BYTES) chunks += 1;
      if (chunks <= MAX_CHUNKS && count(socket) <= MAX_CHUNKS_A_TURN) return push(chunk);
      request.push = () => false;
      ignoreChunks(socket);
      socket.pause();
      refuse(socket);
      return false;
    };
  };
  return (request, response) => {
    const { headers } = request;
    if ((headers['transfer-encoding'] ?? headers['content-length']) !== undefined) limit(request);
    serve(request, response);
  };
};
