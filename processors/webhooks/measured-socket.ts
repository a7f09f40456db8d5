import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { Duplex } from 'node:stream';
import { errors } from 'undici';
import { AttemptFailure } from './attempt-failure.ts';
import type { TlsPace } from './tls-pace.ts';

/**
 * Limit of received bytes until the TLS handshake is complete: several times a usual certificate chain. Each certificate
 * costs the event loop milliseconds, trusted or not, and Node limits neither their number nor their size.
 */
const MAX_HANDSHAKE_BYTES = 16_384;
/**
 * Limit of received bytes of a response beyond its content: TLS's own, session tickets and key updates, of which each takes the
 * event loop 8 microseconds and more. A record is no content before all of its 16 KiB are there.
 */
const MAX_OVERHEAD_BYTES = 24_576;
/** Bytes that TLS gets between two checks of the limits: 64 KiB that arrive at once hold 3,600 session tickets, which take 30 ms. */
const PART_BYTES = 4_096;

/**
 * undici takes a reset for the possible end of an answer, also of one that was cut off, and throws. Its own error for a broken connection
 * concerns no request but the one under way.
 */
const asBroken = (error: NodeJS.ErrnoException): Error =>
  error.code === 'ECONNRESET'
    ? Object.assign(new errors.SocketError(error.message), { cause: error })
    : error;

/**
 * TLS over a stream that has closed emits `close` within `destroy`, so within undici's parser and before the error, and reports what it
 * could not write even later. undici's assertions expect an error first, then `close`, then nothing.
 */
export const keepOrder = (tls: Socket): void => {
  const destroy = tls._destroy.bind(tls);
  tls._destroy = (error, done) => {
    done(error);
    process.nextTick(destroy, error, () => undefined);
  };
  tls.once('close', () => tls.removeAllListeners('error').on('error', () => undefined));
};

/** The TLS socket over the connection. */
type ContentReader = Pick<Socket, 'bytesRead' | 'destroyed'>;

/**
 * A TCP connection for `tls.connect` that receives at most 16 KiB until `allow` sets another limit. TLS over a plain
 * socket reads 64 KiB at a time natively, so OpenSSL would get a long chain before any listener runs. Network bytes are
 * counted because a receiver may send endless session tickets, which readers of the TLS socket never see. TLS gets them at the
 * partner's pace.
 */
export class MeasuredSocket extends Duplex {
  readonly #socket: Socket;
  readonly #pace: TlsPace;
  #withdraw: () => void = () => undefined;
  #limit = MAX_HANDSHAKE_BYTES;
  #received = 0;
  /** Of the last chunk, a part in each turn of the event loop. */
  #unprocessed: Buffer = Buffer.alloc(0);
  /** What happened to the connection meanwhile. */
  #following: (() => void)[] = [];
  #processingMs = 0;
  #isNew = true;
  #tls: ContentReader | null = null;
  #contentBefore = 0;

  constructor(options: TcpNetConnectOpts, pace: TlsPace) {
    super({ allowHalfOpen: false });
    this.#pace = pace;
    this.#socket = connect(options);
    this.#socket.on('data', (chunk) => this.#receive(chunk));
    this.#socket.on('end', () => this.#afterProcessing(() => this.push(null)));
    this.#socket.on('error', (error) => this.#afterProcessing(() => this.destroy(asBroken(error))));
    this.#socket.on('close', () => this.#afterProcessing(() => this.destroy()));
  }

  /** Returns the milliseconds of processing since the last call, and whether they are those of the handshake: mostly of certificates. */
  takeProcessingMs(): { readonly ms: number; readonly isHandshake: boolean } {
    const taken = { ms: this.#processingMs, isHandshake: this.#isNew };
    this.#processingMs = 0;
    this.#isNew = false;
    return taken;
  }

  /** Resets the count and allows `bytes` more, of which `tls` reads the content. */
  allow(bytes: number, tls: ContentReader): void {
    this.#limit = bytes;
    this.#received = 0;
    this.#tls = tls;
    this.#contentBefore = tls.bytesRead;
  }

  #receive(chunk: Buffer): void {
    this.#unprocessed = chunk;
    this.#socket.pause();
    this.#processNext();
  }

  /** An answer counts although the receiver closes the connection behind it. */
  #afterProcessing(act: () => void): void {
    if (this.#unprocessed.length === 0) act();
    else this.#following.push(act);
  }

  #processNext(): void {
    this.#withdraw = this.#pace.whenDue(() => {
      const part = this.#unprocessed.subarray(0, PART_BYTES);
      this.#unprocessed = this.#unprocessed.subarray(PART_BYTES);
      const began = performance.now();
      const canPushMore = this.#process(part);
      const ms = performance.now() - began;
      this.#processingMs += ms;
      if (this.#unprocessed.length > 0) setImmediate(() => this.#processNext());
      else this.#processed(canPushMore);
      return ms;
    });
  }

  #process(part: Buffer): boolean {
    // TLS that its reader has closed takes no more bytes.
    if (this.destroyed || this.#tls?.destroyed) return false;
    const overhead = this.#tls === null ? 0 : this.#received - (this.#tls.bytesRead - this.#contentBefore);
    this.#received += part.length;
    if (this.#received > this.#limit || overhead > MAX_OVERHEAD_BYTES) {
      const cause = new Error(`the receiver sent ${this.#received} bytes, ${overhead} of them no content`);
      this.destroy(new AttemptFailure('connect', { cause }));
      return false;
    }
    // TLS parses the bytes and verifies its certificates before `push` returns.
    return this.push(part);
  }

  #processed(canPushMore: boolean): void {
    if (canPushMore) this.#socket.resume();
    for (const act of this.#following.splice(0)) act();
  }

  override _read(): void {
    if (this.#unprocessed.length === 0) this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#withdraw();
    this.#socket.destroy();
    done(error);
  }
}
