import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { Duplex } from 'node:stream';
import { AttemptFailure } from './attempt-failure.ts';

/**
 * Limit of received bytes until the TLS handshake is complete: several times a usual certificate chain. Each certificate
 * costs the event loop milliseconds, trusted or not, and Node limits neither their number nor their size.
 */
const MAX_HANDSHAKE_BYTES = 16_384;

/**
 * A TCP connection for `tls.connect` that receives at most 16 KiB until `allow` sets another limit. TLS over a plain
 * socket reads 64 KiB at a time natively, so OpenSSL would get a long chain before any listener runs. Network bytes are
 * counted because a receiver may send endless session tickets, which readers of the TLS socket never see and which cost
 * 10 microseconds of the event loop each.
 */
export class MeasuredSocket extends Duplex {
  readonly #socket: Socket;
  #limit = MAX_HANDSHAKE_BYTES;
  #received = 0;
  #processingMs = 0;

  constructor(options: TcpNetConnectOpts) {
    super({ allowHalfOpen: false });
    this.#socket = connect(options);
    this.#socket.on('data', (chunk) => this.#receive(chunk));
    this.#socket.on('end', () => this.push(null));
    this.#socket.on('error', (error) => this.destroy(error));
    this.#socket.on('close', () => this.destroy());
  }

  /** Milliseconds spent processing received bytes; during a handshake mostly certificates. */
  get processingMs(): number {
    return this.#processingMs;
  }

  /** Resets the count and allows `bytes` more. */
  allow(bytes: number): void {
    this.#limit = bytes;
    this.#received = 0;
  }

  #receive(chunk: Buffer): void {
    this.#received += chunk.length;
    if (this.#received > this.#limit) {
      const cause = new Error(`the receiver sent more than ${this.#limit} bytes`);
      this.destroy(new AttemptFailure('connect', { cause }));
      return;
    }
    const began = performance.now();
    // TLS parses the chunk and verifies its certificates before `push` returns.
    const canPushMore = this.push(chunk);
    this.#processingMs += performance.now() - began;
    if (!canPushMore) this.#socket.pause();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
