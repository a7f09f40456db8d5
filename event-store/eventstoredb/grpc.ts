/** Calls of gRPC over one HTTP/2 connection (the gRPC specification, "gRPC over HTTP2"). */
import * as http2 from 'node:http2';
import type { ConnectionSettings } from './connection-string.ts';

/** A call that ended otherwise than with status 0. */
export class CallFailed extends Error {
  /** Of gRPC; 14 (unavailable) where the connection broke. */
  readonly code: number;
  /** Whether the server cannot have taken up the call. */
  readonly neverSent: boolean;
  /** Trailers of the server, among them `exception`. */
  readonly trailers: Readonly<Record<string, string>>;
  constructor(
    code: number,
    message: string,
    trailers: Readonly<Record<string, string>> = {},
    neverSent = false,
  ) {
    super(message);
    this.code = code;
    this.trailers = trailers;
    this.neverSent = neverSent;
  }
}

export const UNAVAILABLE = 14;

/** Above the 16 MiB that the server accepts of one event. */
const MAX_MESSAGE_BYTES = 20 * 1_048_576;
const WINDOW_BYTES = 8 * 1_048_576;
const CONNECT_MS = 3_000;
/** Shorter than an election. */
const DOUBT_MS = 1_000;

/** Splits the bytes of a call into messages. A length that is only claimed allocates nothing. */
export function createUnframer(onMessage: (bytes: Buffer) => void): (chunk: Buffer) => void {
  let held: Buffer[] = [];
  let size = 0;
  let wanted = 5;
  return (chunk) => {
    held.push(chunk);
    size += chunk.length;
    if (size < wanted) return;
    const bytes = held.length === 1 ? chunk : Buffer.concat(held, size);
    let at = 0;
    wanted = 5;
    while (bytes.length - at >= 5) {
      if (bytes[at] !== 0) throw new CallFailed(13, 'the server sent a compressed message');
      const length = bytes.readUInt32BE(at + 1);
      if (length > MAX_MESSAGE_BYTES) throw new CallFailed(8, `the server sent a message of ${length} bytes`);
      if (bytes.length - at - 5 < length) {
        wanted = 5 + length;
        break;
      }
      onMessage(bytes.subarray(at + 5, at + 5 + length));
      at += 5 + length;
    }
    const rest = bytes.subarray(at);
    held = rest.length === 0 ? [] : [rest];
    size = rest.length;
  };
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
  /** Says that nothing more is written. */
  end(): void;
  /** Stops the server's messages until `resume`, by HTTP/2's flow control. */
  pause(): void;
  resume(): void;
  /** Ends the call with `code` 1 unless it has ended. */
  cancel(): void;
}

export interface Connection {
  readonly host: string;
  readonly port: number;
  readonly isClosed: () => boolean;
  /** Monotonic milliseconds of the last frame that the server sent. */
  readonly lastFrameAt: () => number;
  /** Whether a frame came after more than a second of silence, since it was last trusted. */
  readonly isDoubted: () => boolean;
  /** Ends the doubt about frames up to a moment (monotonic milliseconds), and the silence before it. */
  trust(until: number): void;
  call(method: string, handlers: CallHandlers, headers?: Readonly<Record<string, string>>): Call;
  /** Sends one message and resolves with all answers. @throws CallFailed */
  unary(method: string, message: Uint8Array, deadlineMs: number): Promise<Buffer[]>;
  close(): void;
}

/** Opens a connection, which reports its failures through its calls. `onClose` is called once. */
export function openConnection(
  { host, port }: { readonly host: string; readonly port: number },
  settings: ConnectionSettings,
  onClose: () => void = () => undefined,
): Connection {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const session = http2.connect(`${settings.tls ? 'https' : 'http'}://${authority}`, {
    ...settings.tlsOptions,
    settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
  });
  let broken: string | null = null;
  let isConnected = false;
  let lastFrameAt = performance.now();
  let doubtedAt: number | null = null;
  const seen = (): void => {
    const now = performance.now();
    if (now - lastFrameAt > DOUBT_MS) doubtedAt = now;
    lastFrameAt = now;
  };
  const connecting = setTimeout(() => session.destroy(new Error('no connection in time')), CONNECT_MS);
  session.once('connect', () => {
    isConnected = true;
    clearTimeout(connecting);
    session.setLocalWindowSize(WINDOW_BYTES);
    seen();
  });
  session.on('error', (error: Error) => {
    broken ??= error.message;
  });
  session.once('goaway', () => {
    broken ??= 'the server closes the connection';
    session.close();
  });
  let waitingPing: NodeJS.Timeout | null = null;
  const keepAlive = setInterval(() => {
    if (session.destroyed || waitingPing !== null) return;
    waitingPing = setTimeout(
      () => session.destroy(new Error('the server is silent')),
      settings.keepAliveTimeoutMs,
    );
    session.ping((error) => {
      if (waitingPing !== null) clearTimeout(waitingPing);
      waitingPing = null;
      if (error === null) seen();
    });
  }, settings.keepAliveIntervalMs);
  keepAlive.unref();
  session.once('close', () => {
    clearTimeout(connecting);
    clearInterval(keepAlive);
    if (waitingPing !== null) clearTimeout(waitingPing);
    broken ??= 'the connection is closed';
    onClose();
  });

  const call = (
    method: string,
    { onMessage, onEnd }: CallHandlers,
    headers: Readonly<Record<string, string>> = {},
  ): Call => {
    let failure: CallFailed | null = null;
    let trailers: Record<string, string> | null = null;
    let status: number | null = null;
    let stream: http2.ClientHttp2Stream;
    const lost = (neverSent: boolean): CallFailed =>
      new CallFailed(UNAVAILABLE, broken ?? 'the call broke off', trailers ?? {}, neverSent);
    try {
      if (broken !== null || session.closed || session.destroyed) throw new Error(broken ?? 'closed');
      stream = session.request(
        {
          ':method': 'POST',
          ':path': method,
          'content-type': 'application/grpc',
          te: 'trailers',
          ...(settings.authorization === null ? {} : { authorization: settings.authorization }),
          ...headers,
        },
        { endStream: false },
      );
    } catch (error) {
      broken ??= (error as Error).message;
      queueMicrotask(() => onEnd(lost(true)));
      return { write: nothing, end: nothing, pause: nothing, resume: nothing, cancel: nothing };
    }
    const take = (given: http2.IncomingHttpHeaders): void => {
      seen();
      if (given['grpc-status'] === undefined) return;
      trailers = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)]));
      status = Number(given['grpc-status']);
    };
    const unframe = createUnframer(onMessage);
    stream.on('response', (given) => {
      if (Number(given[':status']) !== 200)
        failure ??= new CallFailed(UNAVAILABLE, `the server answered with HTTP ${given[':status']}`);
      take(given);
    });
    stream.on('trailers', take);
    stream.on('data', (chunk: Buffer) => {
      seen();
      try {
        unframe(chunk);
      } catch (error) {
        failure ??= error instanceof CallFailed ? error : new CallFailed(13, (error as Error).message);
        stream.close(http2.constants.NGHTTP2_CANCEL);
      }
    });
    stream.on('error', (error: Error) => {
      broken ??= session.destroyed ? error.message : null;
      failure ??= new CallFailed(UNAVAILABLE, error.message, {}, !isConnected);
    });
    stream.once('close', () => {
      if (failure === null && status === null) failure = lost(!isConnected);
      else if (failure === null && status !== 0)
        failure = new CallFailed(status ?? 2, decodedMessage(trailers?.['grpc-message']), trailers ?? {});
      onEnd(failure);
    });
    return {
      write: (bytes) => void stream.write(bytes),
      end: () => void stream.end(),
      pause: () => void stream.pause(),
      resume: () => void stream.resume(),
      cancel: () => {
        failure ??= new CallFailed(1, 'cancelled');
        stream.close(http2.constants.NGHTTP2_CANCEL);
      },
    };
  };

  return {
    host,
    port,
    isClosed: () => broken !== null || session.closed || session.destroyed,
    lastFrameAt: () => lastFrameAt,
    isDoubted: () => doubtedAt !== null,
    trust: (until) => {
      if (doubtedAt !== null && doubtedAt <= until) doubtedAt = null;
      lastFrameAt = Math.max(lastFrameAt, until);
    },
    call,
    unary: (method, message, deadlineMs) =>
      new Promise((resolve, reject) => {
        const answers: Buffer[] = [];
        const timer = setTimeout(() => {
          reject(new CallFailed(4, 'no answer in time'));
          made.cancel();
        }, deadlineMs);
        const made = call(method, {
          onMessage: (bytes) => void answers.push(bytes),
          onEnd: (failure) => {
            clearTimeout(timer);
            if (failure === null) resolve(answers);
            else reject(failure);
          },
        });
        made.write(framed(message));
        made.end();
      }),
    close: () => {
      broken ??= 'the event store is closed';
      session.destroy();
    },
  };
}

const nothing = (): void => undefined;

/** `grpc-message` is percent-encoded. */
function decodedMessage(text = 'no message'): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
