import { constants } from 'node:crypto';
import type { LookupFunction, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, DEFAULT_CIPHERS, rootCertificates } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { buildConnector, Pool } from 'undici';
import { AttemptFailure } from './attempt-failure.ts';
import { MeasuredSocket } from './measured-socket.ts';
import { meterResponses } from './response-meter.ts';

export interface Connections {
  /** Kept-alive connections to this origin at these addresses, and at no others. */
  pool(origin: string, addresses: readonly string[]): Pool;
  /** Waits for requests under way. */
  close(): Promise<void>;
}

/** An idle pool takes 27 KB, a TLS connection of its own 143 KB more. */
const MOST_POOLS = 500;
/** Then the next of several addresses is tried. */
const NEXT_ADDRESS_MS = 1_000;
const LONGEST_IDLE_MS = 60_000;
const LARGEST_HEADERS = 16_384;
/**
 * Without Diffie-Hellman over primes (TLS 1.2): the receiver chooses the prime, and one of 10,000 bits holds the event
 * loop for half a second, before anything is known of the certificate.
 */
const CIPHERS = `${DEFAULT_CIPHERS}:!kDHE`;

/**
 * Connections to vetted addresses. A name's pool is known by its addresses too: a kept-alive connection would outlive a
 * change in DNS. One connector serves all pools, because it is what remembers TLS sessions.
 * @param connectMs for TCP and TLS together
 * @param extraCa PEM: authorities beside the usual ones
 */
export const createConnections = ({
  connectMs,
  extraCa,
}: {
  connectMs: number;
  extraCa: string | null;
}): Connections => {
  const connector = buildConnector({
    ...TCP,
    allowH2: false,
    // Said here, NODE_TLS_REJECT_UNAUTHORIZED=0 does not undo it.
    rejectUnauthorized: true,
    timeout: connectMs,
    secureContext: createSecureContext({
      ciphers: CIPHERS,
      // A second handshake (TLS 1.2) would bring another chain of certificates, beyond the limit of the first.
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      ...(extraCa === null ? {} : { ca: [...rootCertificates, extraCa] }),
    }),
  });
  // The host to connect to is the addresses: an only one is connected to without a look-up, several are what
  // `lookUpPinned` reads out of it. SNI, Host and the certificate's check go by the origin's name as ever.
  const connectorTo =
    (pinned: string): buildConnector.connector =>
    (options, done) => {
      const secure = options.protocol === 'https:';
      const tcp = secure ? connectMeasured(pinned, options.port) : null;
      // undici's type asks for a net.Socket; `tls.connect`, which gets it, takes any duplex stream.
      const httpSocket = tcp as Duplex | null as Socket | null;
      connector({ ...options, hostname: pinned, ...(httpSocket && { httpSocket }) }, (error, socket) => {
        if (error) return done(connectFailure(error, options.protocol, tcp?.processingMs ?? 0), null);
        meterResponses(socket, tcp);
        done(null, socket);
      });
    };

  const pools = new LRUCache<string, Pool>({
    max: MOST_POOLS,
    dispose: (pool, _key, why) => {
      if (why === 'evict') void pool.close().catch(() => undefined);
    },
  });
  return {
    pool: (origin, addresses) => {
      const pinned = addresses.join(',');
      const key = `${origin} ${pinned}`;
      const known = pools.get(key);
      if (known) return known;
      const pool = new Pool(origin, {
        allowH2: false,
        pipelining: 1,
        connect: connectorTo(pinned),
        keepAliveMaxTimeout: LONGEST_IDLE_MS,
        maxHeaderSize: LARGEST_HEADERS,
        // An attempt has one limit for all, and is ended by it.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      pools.set(key, pool);
      return pool;
    },
    close: async () => {
      const open = [...pools.values()];
      pools.clear();
      await Promise.all(open.map((pool) => pool.close()));
    },
  };
};

/** `pinned` as the connector of undici has it, with its settings for TCP. */
const connectMeasured = (pinned: string, port: string): MeasuredSocket =>
  new MeasuredSocket({
    ...TCP,
    host: pinned,
    port: Number(port || 443),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: LONGEST_IDLE_MS,
  });

let turn = 0;

/** Each connection begins at another address: what round-robin DNS means. */
const lookUpPinned: LookupFunction = (pinned, _options, done) => {
  const addresses = pinned.split(',').map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  turn = (turn + 1) % addresses.length;
  done(null, [...addresses.slice(turn), ...addresses.slice(0, turn)]);
};

const TCP = {
  lookup: lookUpPinned,
  autoSelectFamily: true,
  autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
} as const;

const connectFailure = (
  error: NodeJS.ErrnoException,
  protocol: string,
  handshakeMs: number,
): AttemptFailure => {
  const options = { cause: error, handshakeMs };
  if (error instanceof AttemptFailure) return new AttemptFailure(error.kind, options);
  if (['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT'].includes(error.code ?? '')) {
    return new AttemptFailure('timeout', options);
  }
  // All that is not TCP's `connect` comes after it, and that is TLS.
  const tcp = protocol === 'http:' || error.syscall === 'connect' || error instanceof AggregateError;
  return new AttemptFailure(tcp ? 'connect' : 'tls', options);
};
