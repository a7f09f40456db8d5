import { constants } from 'node:crypto';
import type { LookupFunction, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, DEFAULT_CIPHERS, rootCertificates } from 'node:tls';
import { buildConnector, Pool } from 'undici';
import { AttemptFailure } from './attempt-failure.ts';
import { createKeptPools } from './kept-pools.ts';
import { keepOrder, MeasuredSocket } from './measured-socket.ts';
import { MAX_RESPONSE_BYTES, meterResponses } from './response-meter.ts';
import { createTlsPaces, type TlsPace } from './tls-pace.ts';

/** Milliseconds of the event loop. */
export interface ConnectionCost {
  readonly handshakeMs: number;
  /** Of decrypting responses, beyond the time of usual ones. */
  readonly responseMs: number;
}

export interface Connections {
  /** Returns a partner's pool of kept-alive connections to exactly these addresses of an origin. */
  pool(partnerId: string, origin: string, addresses: readonly string[]): Pool;
  /** Returns the event loop time of the pool's successful TLS handshakes and of its responses since the last call. */
  takeCost(pool: Pool): ConnectionCost;
  close(): Promise<void>;
}

/** Time after which the next of several addresses is tried. */
const NEXT_ADDRESS_MS = 1_000;
const MAX_IDLE_MS = 60_000;
/** Event loop time of decrypting a usual response, milliseconds, several times over. */
const USUAL_MS = 1;
/**
 * Excludes finite-field Diffie-Hellman (TLS 1.2): the receiver chooses the prime, and one of 10,000 bits blocks the event
 * loop for half a second before the certificate is known.
 */
const CIPHERS = `${DEFAULT_CIPHERS}:!kDHE`;
/** Without P-521 and finite fields (TLS 1.3), of which the receiver may choose one, and which take 2 to 3 ms. */
const GROUPS = 'X25519MLKEM768:X25519:P-256:P-384';

/**
 * Creates connections to vetted addresses. A pool's key includes the addresses, because a kept-alive connection would
 * outlive a change in DNS, and the partner, whose pace it keeps. All pools share one connector, which caches TLS sessions.
 * @param connectMs time limit of TCP and TLS together
 * @param extraCa PEM of certificate authorities to trust besides the default ones
 */
export const createConnections = ({
  connectMs,
  extraCa,
}: {
  connectMs: number;
  extraCa: string | null;
}): Connections => {
  const connector = createConnector(connectMs, extraCa);
  const paceOf = createTlsPaces();
  /** TLS calls back before its time is known, also for handshakes. */
  const connected = new WeakMap<Pool, MeasuredSocket[]>();
  const pools = createKeptPools();
  return {
    pool: (partnerId, origin, addresses) => {
      const pinned = addresses.join(',');
      const name = `${origin} ${pinned}`;
      const known = pools.find(partnerId, name);
      if (known) return known;
      const pool: Pool = new Pool(origin, {
        allowH2: false,
        pipelining: 1,
        connect: connectorTo(connector, pinned, paceOf(partnerId), (tcp) =>
          connected.set(pool, [...(connected.get(pool) ?? []), tcp]),
        ),
        keepAliveMaxTimeout: MAX_IDLE_MS,
        // Never reached: `exchange` has the limit of headers.
        maxHeaderSize: 2 * MAX_RESPONSE_BYTES,
        // `exchange` limits the whole attempt.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      pools.add(partnerId, name, pool);
      return pool;
    },
    takeCost: (pool) => {
      const sockets = connected.get(pool) ?? [];
      const cost = costOf(sockets);
      connected.set(
        pool,
        sockets.filter(({ destroyed }) => !destroyed),
      );
      return cost;
    },
    close: pools.close,
  };
};

/** Takes the time that TLS took for connections. */
const costOf = (sockets: readonly MeasuredSocket[]): ConnectionCost => {
  const sums = { handshakes: 0, others: 0 };
  for (const socket of sockets) {
    const { ms, isHandshake } = socket.takeProcessingMs();
    sums[isHandshake ? 'handshakes' : 'others'] += ms;
  }
  return { handshakeMs: sums.handshakes, responseMs: Math.max(0, sums.others - USUAL_MS) };
};

const createConnector = (connectMs: number, extraCa: string | null): buildConnector.connector =>
  buildConnector({
    ...TCP,
    allowH2: false,
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 has no effect.
    rejectUnauthorized: true,
    timeout: connectMs,
    secureContext: createSecureContext({
      ciphers: CIPHERS,
      ecdhCurve: GROUPS,
      // A renegotiation (TLS 1.2) would bring another certificate chain, outside the limit of the first handshake.
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      ...(extraCa === null ? {} : { ca: [...rootCertificates, extraCa] }),
    }),
  });

/**
 * The hostname holds the pinned addresses: a single one is connected to directly, several are parsed by `lookUpPinned`. SNI, the
 * Host header and certificate validation still use the origin's name.
 */
const connectorTo =
  (
    connector: buildConnector.connector,
    pinned: string,
    pace: TlsPace,
    onConnected: (tcp: MeasuredSocket) => void,
  ): buildConnector.connector =>
  (options, done) => {
    const secure = options.protocol === 'https:';
    const tcp = secure ? connectMeasured(pinned, options.port, pace) : null;
    // undici's type requires net.Socket, but passes it to `tls.connect`, which accepts any duplex stream.
    const httpSocket = tcp as Duplex | null as Socket | null;
    connector({ ...options, hostname: pinned, ...(httpSocket && { httpSocket }) }, (error, socket) => {
      if (error) return done(connectFailure(error, options.protocol, tcp?.takeProcessingMs().ms ?? 0), null);
      if (tcp !== null) {
        onConnected(tcp);
        keepOrder(socket);
      }
      meterResponses(socket, tcp);
      done(null, socket);
    });
  };

/** Connects to the pinned addresses with the TCP options that undici's connector would use. */
const connectMeasured = (pinned: string, port: string, pace: TlsPace): MeasuredSocket =>
  new MeasuredSocket(
    {
      ...TCP,
      host: pinned,
      port: Number(port || 443),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: MAX_IDLE_MS,
    },
    pace,
  );

let nextAddress = 0;

/** Rotates the addresses, so that connections spread over them as with round-robin DNS. */
const lookUpPinned: LookupFunction = (pinned, _options, done) => {
  const addresses = pinned.split(',').map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  nextAddress = (nextAddress + 1) % addresses.length;
  done(null, [...addresses.slice(nextAddress), ...addresses.slice(0, nextAddress)]);
};

const TCP = {
  lookup: lookUpPinned,
  autoSelectFamily: true,
  autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
} as const;

const connectFailure = (error: NodeJS.ErrnoException, protocol: string, costMs: number): AttemptFailure => {
  const options = { cause: error, costMs };
  if (error instanceof AttemptFailure) return new AttemptFailure(error.kind, options);
  if (['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT'].includes(error.code ?? '')) {
    return new AttemptFailure('timeout', options);
  }
  // Every error except TCP's `connect` occurs after the TCP connection, so it comes from TLS.
  const tcp = protocol === 'http:' || error.syscall === 'connect' || error instanceof AggregateError;
  return new AttemptFailure(tcp ? 'connect' : 'tls', options);
};
