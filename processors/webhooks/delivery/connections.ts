import type { LookupFunction, Socket } from 'node:net';
import { createSecureContext, DEFAULT_CIPHERS, rootCertificates } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { buildConnector, Pool } from 'undici';
import type { DeliveryError } from '../../../domain/webhooks/events.ts';

/** An attempt that ended without a response. */
export class AttemptFailure extends Error {
  readonly kind: DeliveryError;
  constructor(kind: DeliveryError, options?: ErrorOptions) {
    super(kind, options);
    this.kind = kind;
  }
}

export interface Connections {
  /** Returns the pool of kept-alive connections to exactly these addresses of an origin. */
  pool(origin: string, addresses: readonly string[]): Pool;
  /** Opens a pool of new connections to these addresses, which the caller closes. */
  newPool(origin: string, addresses: readonly string[]): Pool;
  close(): Promise<void>;
}

/** An idle pool takes 27 KB, and each of its TLS connections 80 to 143 KB more. */
const MAX_POOLS = 500;
const MAX_RESPONSE_BYTES = 65_536;
/** Time after which the next of several addresses is tried. */
const NEXT_ADDRESS_MS = 1_000;
const MAX_IDLE_MS = 60_000;
/** Finite-field Diffie-Hellman is excluded as in browsers: the receiver chooses the prime, and with it what a handshake costs. */
const CIPHERS = `${DEFAULT_CIPHERS}:!kDHE`;

/**
 * Creates connections to vetted addresses. A pool's key includes the addresses, because a kept-alive connection would
 * outlive a change in DNS. All pools share one connector, which caches TLS sessions.
 * @param connectMs time limit of TCP and TLS together
 * @param extraCa PEM of certificate authorities to trust besides the default ones
 */
export function createConnections({
  connectMs,
  extraCa,
}: {
  connectMs: number;
  extraCa: string | null;
}): Connections {
  const connector = buildConnector({
    allowH2: false,
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 has no effect.
    rejectUnauthorized: true,
    // One for all connections: each of its own would take megabytes outside the heap until it is collected.
    secureContext: createSecureContext({
      ciphers: CIPHERS,
      ...(extraCa === null ? {} : { ca: [...rootCertificates, extraCa] }),
    }),
    timeout: connectMs,
    lookup: lookUpPinned,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
  });
  const pools = new LRUCache<string, Pool>({
    max: MAX_POOLS,
    // Waits for the requests under way.
    dispose: (pool) => void pool.close().catch(() => undefined),
  });
  const newPool = (origin: string, addresses: readonly string[]): Pool =>
    new Pool(origin, {
      allowH2: false,
      pipelining: 1,
      connect: pinnedTo(connector, addresses.join(',')),
      keepAliveMaxTimeout: MAX_IDLE_MS,
      // `postAndReadStatus` limits the whole attempt.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  return {
    newPool,
    pool: (origin, addresses) => {
      const key = `${origin} ${addresses.join(',')}`;
      const known = pools.get(key);
      if (known) return known;
      const pool = newPool(origin, addresses);
      pools.set(key, pool);
      return pool;
    },
    close: async () => {
      const open = [...pools.values()];
      pools.clear();
      await Promise.all(open.map((pool) => pool.destroy()));
    },
  };
}

/**
 * Passes the vetted addresses as the hostname: a single one is connected to directly, several are parsed by `lookUpPinned`.
 * SNI, the Host header and certificate validation still use the origin's name.
 */
function pinnedTo(connector: buildConnector.connector, pinned: string): buildConnector.connector {
  return (options, done) =>
    connector({ ...options, hostname: pinned }, (error, socket) => {
      if (error) return done(connectFailure(error, options.protocol), null);
      // Before undici's own listeners, which pass the error on.
      noteUnanswered(socket);
      done(null, socket);
      // After undici's own listener: a response whose status was parsed counts.
      limitResponses(socket);
    });
}

/** Errors of connections that had answered an earlier request and ended before the first byte of an answer to the next. */
const unanswered = new WeakSet<Error>();

/**
 * Returns whether an error says that a kept-alive connection ended without a byte of an answer. Receivers close idle connections, also
 * just as the next request is sent.
 */
export const isUnanswered = (error: unknown): boolean => error instanceof Error && unanswered.has(error);

function noteUnanswered(socket: Socket): void {
  let isReused = false;
  let isWaiting = false;
  const { read, write } = socket;
  // Bytes of TLS itself, which the socket's counters include, are no answer.
  socket.read = (size) => {
    const chunk = read.call(socket, size);
    if (chunk !== null) {
      isReused = true;
      isWaiting = false;
    }
    return chunk;
  };
  socket.write = (...data: unknown[]): boolean => {
    isWaiting = true;
    return write.apply(socket, data as Parameters<Socket['write']>);
  };
  socket.on('error', (error) => {
    if (isReused && isWaiting) unanswered.add(error);
  });
  socket.on('end', () => {
    if (isReused && isWaiting) socket.destroy(new AttemptFailure('connect'));
  });
}

/** Closes a connection on which more than 64 KiB have come, heads and bodies, since the last bytes of a request. */
function limitResponses(socket: Socket): void {
  let written = 0;
  let receivedBefore = 0;
  let received = 0;
  socket.on('readable', () => {
    if (socket.bytesWritten > written) receivedBefore = received;
    written = socket.bytesWritten;
    received = socket.bytesRead;
    if (received - receivedBefore > MAX_RESPONSE_BYTES) socket.destroy(new AttemptFailure('connect'));
  });
}

let nextAddress = 0;

/** Rotates the addresses, so that connections spread over them as with round-robin DNS. */
const lookUpPinned: LookupFunction = (pinned, _options, done) => {
  const addresses = pinned.split(',').map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  nextAddress = (nextAddress + 1) % addresses.length;
  done(null, [...addresses.slice(nextAddress), ...addresses.slice(0, nextAddress)]);
};

function connectFailure(error: NodeJS.ErrnoException, protocol: string): AttemptFailure {
  if (['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT'].includes(error.code ?? '')) {
    return new AttemptFailure('timeout', { cause: error });
  }
  // Every error except TCP's `connect` occurs after the TCP connection, so it comes from TLS.
  const isTcp = protocol === 'http:' || error.syscall === 'connect' || error instanceof AggregateError;
  return new AttemptFailure(isTcp ? 'connect' : 'tls', { cause: error });
}
