/** Calls of gRPC over one HTTP/2 connection (the gRPC specification, "gRPC over HTTP2"). */
import * as http2 from 'node:http2';
import { isIP } from 'node:net';
import type { ConnectionSettings, Endpoint } from './connection-string.ts';

/** A call that ended otherwise than with status 0. */
export class CallFailed extends Error {
  /** Of gRPC; `UNAVAILABLE` where the connection broke. */
  readonly code: number;
  /** Whether the server cannot have taken up the call. */
  readonly neverSent: boolean;
  /** Of the server, among them `exception`. */
  readonly trailers: Readonly<Record<string, string>>;
  constructor(code: number, message: string, trailers: CallFailed['trailers'] = {}, neverSent = false) {
    // OpenSSL ends its messages with a line break.
    super(message.trim());
    this.code = code;
    this.trailers = trailers;
    this.neverSent = neverSent;
  }
}

const OK = 0;
const CANCELLED = 1;
export const DEADLINE_EXCEEDED = 4;
const RESOURCE_EXHAUSTED = 8;
const INTERNAL = 13;
export const UNAVAILABLE = 14;
export const UNAUTHENTICATED = 16;

/** Above the 16 MiB that the server accepts of one event. */
const MAX_MESSAGE_BYTES = 20 * 1_048_576;
/** What the server may send ahead of a slow consumer, for each call. */
const WINDOW_BYTES = 1_048_576;
const CONNECTION_WINDOW_BYTES = 8 * WINDOW_BYTES;
/** In megabytes, with the appends that wait to be sent. Node's 10 refuse calls beside a few large appends. */
const MAX_SESSION_MEMORY = 64;
const CONNECT_MS = 3_000;
/** How long calls may end by themselves once the server has said that it closes the connection. */
const GOAWAY_MS = 2_000;
/** Shorter than an election takes. */
const MAX_SILENCE_MS = 1_000;

export interface Unframer {
  /** @throws CallFailed for bytes that are no message */
  take(chunk: Buffer): void;
  /** Whether a message has begun and not ended. */
  isAmid(): boolean;
}

/** Splits the bytes of a call into messages. It holds what has arrived: a length that is only claimed allocates nothing. */
export function createUnframer(onMessage: (bytes: Buffer) => void): Unframer {
  let held: Buffer[] = [];
  let size = 0;
  let wanted = 5;
  const take = (chunk: Buffer): void => {
    held.push(chunk);
    size += chunk.length;
    if (size < wanted) return;
    let bytes = held.length === 1 ? chunk : Buffer.concat(held, size);
    wanted = 5;
    while (bytes.length >= 5) {
      if (bytes[0] !== 0) throw new CallFailed(INTERNAL, 'the server sent a compressed message');
      const end = 5 + bytes.readUInt32BE(1);
      if (end > MAX_MESSAGE_BYTES)
        throw new CallFailed(RESOURCE_EXHAUSTED, `the server sent a message of ${end} bytes`);
      if (bytes.length < end) {
        wanted = end;
        break;
      }
      onMessage(bytes.subarray(5, end));
      bytes = bytes.subarray(end);
    }
    held = bytes.length === 0 ? [] : [bytes];
    size = bytes.length;
  };
  return { take, isAmid: () => size > 0 };
}

/** Frames a message. */
export function framed(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(5 + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, 5);
  return bytes;
}

export interface CallHandlers {
  /** An error that it throws ends the call. */
  readonly onMessage: (bytes: Buffer) => void;
  /** Called once, when the call has ended; null: with status 0. */
  readonly onEnd: (failure: CallFailed | null) => void;
}

export interface Call {
  write(bytes: Buffer): void;
  /** Stops the server's messages until `resume`, by HTTP/2's flow control. */
  pause(): void;
  resume(): void;
  /** Ends the call as `CANCELLED`, unless it has ended. */
  cancel(): void;
}

export interface Connection extends Endpoint {
  isClosed(): boolean;
  /** Begins a call. `message`: all that it sends; without one the call stays open for `write`. */
  call(method: string, handlers: CallHandlers, message?: Uint8Array): Call;
  /** Sends one message and resolves when all answers have come. @throws CallFailed */
  request(
    method: string,
    message: Uint8Array,
    ms: number,
    onMessage: CallHandlers['onMessage'],
  ): Promise<void>;
  /**
   * Returns whether the node has been trusted since before `instant` (monotonic milliseconds) and has answered without a second of
   * silence since. What it sent by itself proves nothing: that may have waited in a buffer.
   */
  isTrustedSince(instant: number): boolean;
  /** Trusts what the node is asked from `instant` on. */
  trust(instant: number): void;
  close(): void;
}

/** Opens a connection, which reports its failures through its calls. `onClose` is called once. */
export function openConnection(
  { host, port, servername }: Endpoint,
  settings: ConnectionSettings,
  onClose: () => void,
): Connection {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const session = http2.connect(`${settings.tls ? 'https' : 'http'}://${authority}`, {
    ...settings.tlsOptions,
    // An address is no name to ask for.
    servername: servername ?? (isIP(host) === 0 ? host : ''),
    maxSessionMemory: MAX_SESSION_MEMORY,
    settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
  });
  let broken: string | null = null;
  let isConnected = false;
  /** When the newest of the requests that the node has answered was sent. */
  let provenAt = Number.NEGATIVE_INFINITY;
  let trustedFrom = Number.POSITIVE_INFINITY;

  const breakOff = (why: string): void => {
    broken ??= why;
    session.destroy();
  };
  const noteAnswer = (askedAt: number): void => {
    if (performance.now() - provenAt > MAX_SILENCE_MS) trustedFrom = Number.POSITIVE_INFINITY;
    provenAt = Math.max(provenAt, askedAt);
  };
  const connecting = setTimeout(breakOff, CONNECT_MS, 'no connection in time');
  session.once('connect', () => {
    // Node tells it of a session too that was destroyed before.
    if (session.destroyed) return;
    isConnected = true;
    clearTimeout(connecting);
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
  });
  session.on('error', (error: Error) => {
    broken ??= error.message;
  });
  session.once('goaway', () => {
    broken ??= 'the server closes the connection';
    setTimeout(() => session.destroy(), GOAWAY_MS).unref();
  });
  const endKeepAlive = keepAlive(session, settings, () => breakOff('the server is silent'));
  session.once('close', () => {
    clearTimeout(connecting);
    endKeepAlive();
    broken ??= 'the connection is closed';
    onClose();
  });

  const call: Connection['call'] = (method, { onMessage, onEnd }, message) => {
    const askedAt = performance.now();
    let failure: CallFailed | null = null;
    let trailers: Record<string, string> | null = null;
    let stream: http2.ClientHttp2Stream;
    try {
      if (broken !== null) throw new Error(broken);
      stream = session.request({
        ':method': 'POST',
        ':path': method,
        'content-type': 'application/grpc',
        te: 'trailers',
        'requires-leader': 'true',
        ...(settings.authorization === null ? {} : { authorization: settings.authorization }),
      });
    } catch (error) {
      queueMicrotask(() => onEnd(new CallFailed(UNAVAILABLE, (error as Error).message, {}, true)));
      return { write: nothing, pause: nothing, resume: nothing, cancel: nothing };
    }
    const fail = (cause: CallFailed): void => {
      failure ??= cause;
      stream.close(http2.constants.NGHTTP2_CANCEL);
    };
    const takeHeaders = (headers: http2.IncomingHttpHeaders): void => {
      if (headers['grpc-status'] === undefined) return;
      trailers = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    };
    const unframer = createUnframer(onMessage);
    stream.on('response', (headers) => {
      if (message !== undefined) noteAnswer(askedAt);
      if (headers[':status'] !== 200)
        fail(new CallFailed(UNAVAILABLE, `the server answered with HTTP ${headers[':status']}`));
      takeHeaders(headers);
    });
    stream.on('trailers', takeHeaders);
    stream.on('data', (chunk: Buffer) => {
      if (failure !== null) return;
      try {
        unframer.take(chunk);
      } catch (error) {
        fail(error instanceof CallFailed ? error : new CallFailed(INTERNAL, (error as Error).message));
      }
    });
    /** A reset of the call alone leaves the connection to others. */
    const lost = (why: string): CallFailed =>
      new CallFailed(session.destroyed ? UNAVAILABLE : INTERNAL, broken ?? why, {}, !isConnected);
    stream.on('error', (error: Error) => {
      failure ??= lost(error.cause instanceof Error ? error.cause.message : error.message);
    });
    // The server has ended the call, whatever it could still be sent.
    stream.once('end', () => stream.close());
    stream.once('close', () => onEnd(failure ?? outcomeOf(trailers)));
    const outcomeOf = (given: Record<string, string> | null): CallFailed | null => {
      if (given === null) return lost('the call broke off');
      const status = Number(given['grpc-status']);
      if (status !== OK) return new CallFailed(status, decodedMessage(given['grpc-message']), given);
      return unframer.isAmid() ? new CallFailed(INTERNAL, 'the call ended within a message') : null;
    };
    if (message !== undefined) stream.end(framed(message));
    return {
      write: (bytes) => void stream.write(bytes),
      pause: () => void stream.pause(),
      resume: () => void stream.resume(),
      cancel: () => fail(new CallFailed(CANCELLED, 'cancelled')),
    };
  };

  return {
    host,
    port,
    isClosed: () => broken !== null,
    call,
    request: (method, message, ms, onMessage) =>
      new Promise((resolve, reject) => {
        const onEnd = (failure: CallFailed | null): void => {
          clearTimeout(timer);
          if (failure === null) resolve();
          else reject(failure);
        };
        const made = call(method, { onMessage, onEnd }, message);
        const timer = setTimeout(() => {
          reject(new CallFailed(DEADLINE_EXCEEDED, 'no answer in time'));
          made.cancel();
        }, ms);
      }),
    isTrustedSince: (instant) => instant >= trustedFrom,
    trust: (instant) => {
      if (performance.now() - instant > MAX_SILENCE_MS) return;
      trustedFrom = instant;
      provenAt = Math.max(provenAt, instant);
    },
    close: () => breakOff('the event store is closed'),
  };
}

const nothing = (): void => undefined;

/** Pings the server until the returned function is called. */
function keepAlive(
  session: http2.ClientHttp2Session,
  { keepAliveIntervalMs, keepAliveTimeoutMs }: ConnectionSettings,
  onSilence: () => void,
): () => void {
  if (keepAliveIntervalMs === null) return nothing;
  let waiting: NodeJS.Timeout | null = null;
  const answered = (): void => {
    if (waiting !== null) clearTimeout(waiting);
    waiting = null;
  };
  // After a stall of this process the answer may have come and not been read yet.
  const late = (): void => void setImmediate(() => waiting !== null && onSilence());
  const pinging = setInterval(() => {
    if (session.destroyed || session.connecting || waiting !== null) return;
    waiting = setTimeout(late, keepAliveTimeoutMs);
    session.ping(answered);
  }, keepAliveIntervalMs).unref();
  return () => {
    clearInterval(pinging);
    answered();
  };
}

/** `grpc-message` is percent-encoded. */
function decodedMessage(text = 'no message'): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
