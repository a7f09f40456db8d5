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
 * A TCP connection for `tls.connect`, which receives at most 16 KiB until `allow` is called, and then as much as that
 * says. TLS over a plain socket reads 64 KiB at a time natively, so OpenSSL would have a long chain before any listener
 * is called. What is counted is what comes over the network: session tickets, which a receiver may send without end, are
 * nothing that a reader of the TLS socket sees, and 10 microseconds of the event loop each.
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

  /** Milliseconds in which what was received was processed: of a handshake, the certificates above all. */
  get processingMs(): number {
    return this.#processingMs;
  }

  /** Lets so many bytes come from now on. */
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
    // TLS reads it, and checks the certificates in it, before this returns.
    const goesOn = this.push(chunk);
    this.#processingMs += performance.now() - began;
    if (!goesOn) this.#socket.pause();
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
