import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests of one connection that are unanswered; clients that wait for each response have one. */
export const MAX_PIPELINED_REQUESTS = 128;
/** Of these, how many are served at once: their work waits for the same stores as that of other callers. */
const MAX_SERVED_AT_ONCE = 8;

/**
 * Between two requests of a connection that is to be closed: its client connects again, and each time the parser takes
 * ten milliseconds for all that arrives at once.
 */
const CLOSING_PAUSE_MS = 5;

type Exchange = readonly [IncomingMessage, ServerResponse];

/** The unanswered requests of a connection. */
interface Line {
  isClosing: boolean;
  unanswered(): number;
  /** Serves a request, at once or after those before it. */
  add(exchange: Exchange): void;
}

/**
 * Reads no more of a connection, of which all requests that are served have arrived. Node would resume it after each
 * answer, and parse another 64 KiB of requests for nothing.
 */
const stopReading = (socket: Socket): void => {
  socket.pause();
  socket.resume = () => socket;
};

/** The turns of the event loop, and what is to run once in the next one. */
const createTurns = () => {
  let turn = 0;
  let isScheduled = false;
  let next = new Set<() => void>();
  const end = (): void => {
    isScheduled = false;
    turn += 1;
    const now = next;
    next = new Set();
    for (const run of now) run();
  };
  const schedule = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(end);
  };
  return {
    current: (): number => {
      schedule();
      return turn;
    },
    inNext: (run: () => void): void => {
      next.add(run);
      schedule();
    },
  };
};

const createLine = (turns: ReturnType<typeof createTurns>, serve: RequestListener): Line => {
  const waiting: Exchange[] = [];
  let served = 0;
  let lastTurn = -1;
  let isPaused = false;

  const mayServe = (): boolean => lastTurn !== turns.current() && served < MAX_SERVED_AT_ONCE;

  const begin = ([request, response]: Exchange): void => {
    served += 1;
    lastTurn = turns.current();
    response.once('close', () => {
      served -= 1;
      serveLater();
    });
    serve(request, response);
  };

  const serveNext = (): void => {
    isPaused = false;
    const next = mayServe() ? waiting.shift() : undefined;
    if (next?.[0].socket.destroyed) waiting.length = 0;
    else if (next) begin(next);
    serveLater();
  };

  const serveLater = (): void => {
    if (waiting.length === 0 || served >= MAX_SERVED_AT_ONCE || isPaused) return;
    if (!line.isClosing) {
      turns.inNext(serveNext);
      return;
    }
    isPaused = true;
    setTimeout(serveNext, CLOSING_PAUSE_MS);
  };

  const line: Line = {
    isClosing: false,
    unanswered: () => waiting.length + served,
    add: (exchange) => {
      if (waiting.length === 0 && mayServe()) return begin(exchange);
      waiting.push(exchange);
      serveLater();
    },
  };
  return line;
};

/**
 * Wraps a server's request listener: a connection gets one request served in a turn of the event loop, so that one that
 * pipelines gets no more than one that does not. Of 128 unanswered requests the last is answered with `Connection: close`,
 * and those behind it are not served (RFC 9112 section 9.3.2: the client sends them again).
 */
export const limitPipelining = (serve: RequestListener): RequestListener => {
  const turns = createTurns();
  const lines = new WeakMap<Socket, Line>();
  return (request, response) => {
    const { socket } = request;
    const line = lines.get(socket) ?? createLine(turns, serve);
    lines.set(socket, line);
    if (line.isClosing) return stopReading(socket);
    if (line.unanswered() + 1 === MAX_PIPELINED_REQUESTS) {
      line.isClosing = true;
      response.shouldKeepAlive = false;
    }
    line.add([request, response]);
  };
};
