import pTimeout from 'p-timeout';
import { type DestinationPolicy, isOwnOrigin, parseDestination } from '../../domain/webhooks/destination.ts';
import type { DeliveryError } from '../../domain/webhooks/events.ts';
import type { Clock } from '../../platform/clock.ts';
import { coalesceNextOf } from '../../platform/coalesce-next.ts';
import { AttemptFailure } from './attempt-failure.ts';
import { createConnections } from './connections.ts';
import { exchange, type ReceiverResponse } from './exchange.ts';
import type { ReceiverCost } from './receiver-debts.ts';
import { parseRetryAfter } from './retry-after.ts';
import { type Resolver, vet } from './vet.ts';

export interface SendRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly partner_id: string;
}

/** Result of a sent request. */
export interface SendResult {
  /** null: the receiver did not respond. */
  readonly http_status: number | null;
  /** null: the receiver accepted the event (any 2xx). */
  readonly error: DeliveryError | null;
  /** Honoured Retry-After, at most 24 hours. */
  readonly retry_after_ms: number | null;
}

export interface Sender {
  /**
   * Makes one attempt. Resolves within ten seconds, after the attempt has released its resources.
   * @throws if the sender itself failed: whether the receiver got the request is unknown
   */
  send(request: SendRequest): Promise<SendResult>;
  close(): Promise<void>;
}

/** Limits of time. Those of size are in `response-meter.ts` (responses) and `connections.ts` (headers). */
export interface SenderLimits {
  /** Time limit of a whole attempt (contract, Webhooks 5). */
  readonly totalMs: number;
  /** Their sum is below `totalMs`, so no connection opens after its attempt has ended. */
  readonly dnsMs: number;
  readonly connectMs: number;
}

const LIMITS: SenderLimits = { totalMs: 10_000, dnsMs: 3_000, connectMs: 5_000 };

/**
 * Creates a sender of webhooks to the destinations that the policy allows. Every attempt resolves the name, vets every
 * address and connects to one of them.
 * @param extraCa PEM of certificate authorities to trust besides the default ones, for tests
 */
export const createSender = ({
  policy,
  clock,
  extraCa = null,
  resolver,
  limits = LIMITS,
  onCost = () => undefined,
}: {
  policy: DestinationPolicy;
  clock: Clock;
  extraCa?: string | null;
  resolver: Resolver;
  limits?: SenderLimits;
  /** Called with the event loop time of TLS handshakes and of decrypting long responses, milliseconds. */
  onCost?: (partnerId: string, ms: number, kind: ReceiverCost) => void;
}): Sender => {
  const connections = createConnections({ connectMs: limits.connectMs, extraCa });
  const shared = shareLookups(resolver, limits.dnsMs);

  const attempt = async ({
    url: text,
    headers,
    body,
    partner_id,
  }: SendRequest): Promise<ReceiverResponse> => {
    const deadline = performance.now() + limits.totalMs;
    const url = destination(text, policy);
    const addresses = await vet(url, policy, shared, limits.dnsMs);
    const pool = connections.pool(partner_id, url.origin, addresses);
    try {
      return await exchange(pool, { url, headers, body }, deadline - performance.now());
    } finally {
      // Of attempts under way at once, the one that ends next takes the costs of all connections.
      const { handshakeMs, responseMs } = connections.takeCost(pool);
      if (handshakeMs > 0) onCost(partner_id, handshakeMs, 'succeeded');
      if (responseMs > 0) onCost(partner_id, responseMs, 'response');
    }
  };

  return {
    send: (request) =>
      attempt(request).then(
        (answer) => outcomeOf(answer, clock.now()),
        (error: unknown) => {
          if (error instanceof AttemptFailure && error.costMs > 0) {
            onCost(request.partner_id, error.costMs, 'failed');
          }
          return { http_status: null, error: kindOf(error), retry_after_ms: null };
        },
      ),
    close: connections.close,
  };
};

/** An attempt waits no longer for the lookup before its own, which has to end within the same limit. */
const PATIENCE_MS = 250;

/**
 * Attempts that begin while a name is looked up share the next lookup, which is newer than each of them: a backlog would ask for the
 * same name hundreds of times a second. `limitMs`: of one lookup.
 */
const shareLookups = (resolver: Resolver, limitMs: number): Resolver => {
  const limited = (answer: Promise<string[]>): Promise<string[]> =>
    pTimeout(answer, { milliseconds: limitMs });
  return {
    resolve4: coalesceNextOf((name) => limited(resolver.resolve4(name)), 0, PATIENCE_MS),
    resolve6: coalesceNextOf((name) => limited(resolver.resolve6(name)), 0, PATIENCE_MS),
  };
};

/** Checks the URL again, because the endpoint may have been created under another policy. */
const destination = (text: string, policy: DestinationPolicy): URL => {
  const parsed = parseDestination(text, policy);
  if (parsed.ok) return parsed.value;
  const own = URL.canParse(text) && isOwnOrigin(new URL(text), policy);
  throw new AttemptFailure(own ? 'own_origin' : 'blocked_address');
};

const outcomeOf = ({ status, retryAfter }: ReceiverResponse, now: number): SendResult => {
  if (status < 300) return { http_status: status, error: null, retry_after_ms: null };
  return {
    http_status: status,
    error: status < 400 ? 'redirect' : 'http_status',
    retry_after_ms: parseRetryAfter(retryAfter, now),
  };
};

/** undici's own errors occur after connecting: the connection broke, or the response was not HTTP. */
const kindOf = (error: unknown): DeliveryError => (error instanceof AttemptFailure ? error.kind : 'connect');
