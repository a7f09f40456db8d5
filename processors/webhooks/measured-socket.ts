import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { Duplex } from 'node:stream';
import { AttemptFailure } from './attempt-failure.ts';

/**
 * Bytes that a receiver may send before the TLS handshake is complete: several times what a usual chain of certificates
 * takes. Each certificate of a chain costs the event loop milliseconds, trusted or not, and Node limits neither their
 * number nor their size.
 */
const MAX_HANDSHAKE_BYTES = 16_384;

/**
 * A TCP connection for `tls.connect`, which receives at most 16 KiB until `handshakeDone` is called. TLS over a plain
 * socket reads 64 KiB at a time natively, so OpenSSL would have a long chain before any listener is called.
 */
export class MeasuredSocket extends Duplex {
  readonly #socket: Socket;
  #left = MAX_HANDSHAKE_BYTES;

  constructor(options: TcpNetConnectOpts) {
    super({ allowHalfOpen: false });
    this.#socket = connect(options);
    this.#socket.on('data', (chunk) => this.#receive(chunk));
    this.#socket.on('end', () => this.push(null));
    this.#socket.on('error', (error) => this.destroy(error));
    this.#socket.on('close', () => this.destroy());
  }

  /** Ends the limit: the handshake is complete. */
  handshakeDone(): void {
    this.#left = Number.POSITIVE_INFINITY;
  }

  #receive(chunk: Buffer): void {
    this.#left -= chunk.length;
    if (this.#left < 0) {
      this.destroy(new AttemptFailure('connect', { cause: new Error('TLS handshake over 16 KiB') }));
    } else if (!this.push(chunk)) this.#socket.pause();
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
