import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createTurns, type RequestTurns } from './turns.ts';

/** Requests of one connection that are unanswered; clients that wait for each response have one. */
export const MAX_PIPELINED_REQUESTS = 128;
/** Requests of all connections that wait, beyond which a connection has two that are unanswered: each takes some 7 KB of memory. */
export const MAX_WAITING_IN_ALL = 4_096;
const MOST_WHILE_MANY_WAIT = 2;
/** Unanswered requests of a connection that are served at once: their work waits for the same stores as that of other callers. */
const MAX_SERVED_AT_ONCE = 8;
/** Bytes of answers that a connection has not taken, beyond which no further request of it is served. */
const MAX_UNTAKEN_BYTES = 65_536;

/** Between two requests of connections that are to be closed, all of them together: their clients connect again. */
const CLOSING_PAUSE_MS = 1;

type Exchange = readonly [IncomingMessage, ServerResponse];

/** The unanswered requests of a connection. */
interface Line {
  isClosing: boolean;
  /** Takes no further requests. */
  close(): void;
  unanswered(): number;
  /** Serves a request, at once or after those before it. */
  add(exchange: Exchange): void;
}

/** What Node's HTTP server keeps at a socket. */
type HttpSocket = Socket & { parser?: { onIncoming: () => number } | null };

/** llhttp: the rest of the bytes belongs to another protocol, and is not parsed. */
const PARSE_NO_MORE = 2;

/** Whether a connection is read. Node would resume it after each answer, also while others wait. */
const createGate = (socket: HttpSocket) => {
  const resume = socket.resume.bind(socket);
  let isOpen = true;
  socket.resume = () => (isOpen ? resume() : socket);
  const shut = (): void => {
    isOpen = false;
    socket.pause();
  };
  return {
    shut,
    open: (): void => {
      isOpen = true;
      resume();
    },
    /** Drops what has been read and not parsed: 64 KiB of short requests would take 5 MB. */
    shutForGood: (): void => {
      if (socket.parser) socket.parser.onIncoming = () => PARSE_NO_MORE;
      shut();
    },
  };
};
type Gate = ReturnType<typeof createGate>;

/** Runs one at a time, with a pause before each. */
const createQueue = (pauseMs: number) => {
  const waiting = new Set<() => void>();
  const runNext = (): void => {
    const [run] = waiting;
    if (run === undefined) return;
    waiting.delete(run);
    if (waiting.size > 0) setTimeout(runNext, pauseMs);
    run();
  };
  return {
    add: (run: () => void): void => {
      if (waiting.size === 0) setTimeout(runNext, pauseMs);
      waiting.add(run);
    },
  };
};

interface Order extends RequestTurns {
  /** Requests of all connections that wait. */
  waiting: number;
  /** Of connections that are to be closed. */
  readonly closing: ReturnType<typeof createQueue>;
}

const createLine = (socket: HttpSocket, order: Order, serve: RequestListener): Line => {
  const { turns, ownerOf, closing } = order;
  const waiting: Exchange[] = [];
  let gate: Gate | null = null;
  const ownGate = (): Gate => (gate ??= createGate(socket));
  let served = 0;
  let lastTurn = -1;

  /** Until an answer of those before is taken. */
  const isFull = (): boolean =>
    served >= MAX_SERVED_AT_ONCE || (served > 0 && socket.writableLength > MAX_UNTAKEN_BYTES);
  // Those of connections that are to be closed have a timer, in whose phase a full turn has no time left.
  const mayServe = (): boolean =>
    lastTurn !== turns.current() && (line.isClosing || turns.hasTime()) && !isFull();

  const begin = ([request, response]: Exchange): void => {
    served += 1;
    lastTurn = turns.current();
    response.once('close', () => {
      served -= 1;
      serveLater();
    });
    serve(request, response);
  };

  // Of the connection: a request begins in no context of another.
  const serveNext = AsyncResource.bind((): void => {
    const before = waiting.length;
    const next = mayServe() ? waiting.shift() : undefined;
    if (socket.destroyed) waiting.length = 0;
    order.waiting -= before - waiting.length;
    if (next && !socket.destroyed) begin(next);
    if (waiting.length === 0 && !line.isClosing) gate?.open();
    serveLater();
  });

  const serveLater = (): void => {
    const [next] = waiting;
    if (next === undefined || isFull()) return;
    if (line.isClosing) closing.add(serveNext);
    else turns.inNext(ownerOf(next[0]), serveNext);
  };

  const line: Line = {
    isClosing: false,
    unanswered: () => waiting.length + served,
    add: (exchange) => {
      if (waiting.length === 0 && mayServe()) return begin(exchange);
      waiting.push(exchange);
      order.waiting += 1;
      if (line.unanswered() > 1) ownGate().shut();
      serveLater();
    },
    close: () => {
      line.isClosing = true;
      ownGate().shutForGood();
    },
  };
  return line;
};

/**
 * Wraps a server's request listener: a connection gets one request served in a turn of the event loop, so that one that
 * pipelines gets no more than one that does not, and is read no further while requests of it wait. In each turn, all requests together
 * get some milliseconds, and the owners of those that are left take turns. Of 128 unanswered
 * requests the last is answered with `Connection: close`, and those behind it are not served (RFC 9112 section 9.3.2: the
 * client sends them again).
 */
export const limitPipelining = (
  serve: RequestListener,
  { turns, ownerOf }: RequestTurns = { turns: createTurns(), ownerOf: () => '' },
): RequestListener => {
  const order: Order = { waiting: 0, turns, ownerOf, closing: createQueue(CLOSING_PAUSE_MS) };
  const lines = new WeakMap<Socket, Line>();
  return (request, response) => {
    const { socket } = request;
    const line = lines.get(socket) ?? createLine(socket, order, serve);
    lines.set(socket, line);
    if (line.isClosing) return;
    const most = order.waiting < MAX_WAITING_IN_ALL ? MAX_PIPELINED_REQUESTS : MOST_WHILE_MANY_WAIT;
    if (line.unanswered() + 1 >= most) {
      line.close();
      response.shouldKeepAlive = false;
    }
    line.add([request, response]);
  };
};
