import { createHmac, createSecretKey } from 'node:crypto';
import type { Dispatcher, Pool } from 'undici';
import {
  type DestinationPolicy,
  isOwnOrigin,
  parseDestination,
} from '../../../domain/webhooks/destination.ts';
import { type AttemptResult, type DeliveryError, resultOf } from '../../../domain/webhooks/events.ts';
import { MAX_RETRY_AFTER_MS } from '../../../domain/webhooks/schedule.ts';
import type { Clock } from '../../../platform/clock/clock.ts';
import { type Resolver, resolveAllowedAddresses, shareLookups } from './addresses.ts';
import { AttemptFailure, createConnections, isUnanswered } from './connections.ts';

const USER_AGENT = 'Doorplate-Webhooks/1';

/**
 * Makes the headers of one attempt (contract, Webhooks 3; Standard Webhooks 1.0).
 * @param secrets key bytes, the newest first; two during a rotation
 * @param at time of the attempt, milliseconds
 * @param body the exact bytes to send
 */
export function signatureHeaders(
  secrets: readonly Buffer[],
  eventId: string,
  at: number,
  body: Buffer,
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000));
  // A key object takes a quarter of the time of raw bytes, its making included.
  const sign = (secret: Buffer): string =>
    createHmac('sha256', createSecretKey(secret))
      .update(`${eventId}.${timestamp}.`)
      .update(body)
      .digest('base64');
  return {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'webhook-id': eventId,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets.map((secret) => `v1,${sign(secret)}`).join(' '),
  };
}

interface Posting {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

interface ReceiverResponse {
  readonly status: number;
  readonly retryAfter: string | string[] | undefined;
}

/** Limit of interim (1xx) responses; more are no legitimate HTTP. */
const MAX_INTERIM_RESPONSES = 8;
/** A response body is discarded: it is read for this long, and up to 64 KiB (`connections.ts`), so that the connection can be reused. */
const DISCARDING_MS = 1_000;

/**
 * Sends one POST and resolves with the response's status after the request has ended, at the latest after `limitMs`.
 * undici's own timeouts are not enough: a receiver could drip 103 responses, headers and bodies for ever. Sizes are limited by `connections.ts`.
 * @throws AttemptFailure, or undici's error if the connection broke
 */
export function postAndReadStatus(
  pool: Pool,
  { url, headers, body }: Posting,
  limitMs: number,
): Promise<ReceiverResponse> {
  return new Promise((resolve, reject) => {
    const deadline = performance.now() + limitMs;
    let controller: Dispatcher.DispatchController | null = null;
    let response: ReceiverResponse | null = null;
    let isLate = false;
    let interimResponses = 0;
    let timer = setTimeout(stop, Math.max(0, limitMs));

    /** `error`: null where the response has ended. */
    function settle(error: Error | null): void {
      clearTimeout(timer);
      if (response) resolve(response);
      else if (isLate) reject(new AttemptFailure('timeout'));
      else reject(error ?? new Error('the response ended without a status'));
    }

    function stop(): void {
      isLate = true;
      const failure = new AttemptFailure('timeout');
      if (controller) controller.abort(failure);
      else settle(failure);
    }

    pool.dispatch(
      { path: url.pathname + url.search, method: 'POST', headers, body },
      {
        onRequestStart: (started) => {
          controller = started;
          if (isLate) stop();
        },
        onResponseStart: (receiving, status, received) => {
          // A busy event loop runs the timer late; a response after the deadline still counts as a timeout.
          if (performance.now() >= deadline) return stop();
          if (status < 200) {
            interimResponses += 1;
            if (interimResponses > MAX_INTERIM_RESPONSES) receiving.abort(new AttemptFailure('connect'));
            return;
          }
          response = { status, retryAfter: received['retry-after'] };
          clearTimeout(timer);
          timer = setTimeout(stop, Math.min(DISCARDING_MS, deadline - performance.now()));
        },
        onResponseData: () => undefined,
        onResponseEnd: () => settle(null),
        onResponseError: (_controller, error) => settle(error),
      },
    );
  });
}

export interface SendRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly partner_id: string;
}

/** Result of a sent request; no error: the receiver accepted the event (any 2xx). */
export interface SendResult extends AttemptResult {
  /** Honoured Retry-After, at most 24 hours. */
  readonly retry_after_ms: number | null;
}

export interface Sender {
  /** Makes one attempt. Never throws; resolves within ten seconds, after the attempt has released its resources. */
  send(request: SendRequest): Promise<SendResult>;
  close(): Promise<void>;
}

/** Limits of time. That of a response's size is in `connections.ts`. */
export interface SenderLimits {
  /** Time limit of a whole attempt (contract, Webhooks 5). */
  readonly totalMs: number;
  /** Their sum is below `totalMs`, so no connection opens after its attempt has ended. */
  readonly dnsMs: number;
  readonly connectMs: number;
}

interface SenderOptions {
  readonly policy: DestinationPolicy;
  readonly clock: Clock;
  /** PEM of certificate authorities to trust besides the default ones, for tests. */
  readonly extraCa: string | null;
  readonly resolver: Resolver;
  /** Returns whether a host name is an active custom domain of the partner, which would loop back to this service. */
  readonly isOwnDomain: (hostname: string, partnerId: string) => Promise<boolean>;
  readonly limits?: SenderLimits;
}

const LIMITS: SenderLimits = { totalMs: 10_000, dnsMs: 3_000, connectMs: 5_000 };

/**
 * Creates a sender of webhooks to the destinations that the policy allows. Every attempt resolves the name, vets every
 * address and connects to one of them. A request that a kept-alive connection left without a byte of an answer is sent once more, on a
 * new connection, within the same attempt.
 */
export function createSender(options: SenderOptions): Sender {
  const { clock, limits = LIMITS } = options;
  const connections = createConnections({ connectMs: limits.connectMs, extraCa: options.extraCa });
  const lookup = shareLookups(options.resolver, limits.dnsMs);

  async function attempt({ url: text, headers, body, partner_id }: SendRequest): Promise<ReceiverResponse> {
    const url = destination(text, options.policy);
    if (await options.isOwnDomain(url.hostname, partner_id)) throw new AttemptFailure('own_origin');
    const deadline = performance.now() + limits.totalMs;
    const addresses = await resolveAllowedAddresses(url, options.policy, lookup);
    const post = (pool: Pool): Promise<ReceiverResponse> =>
      postAndReadStatus(pool, { url, headers, body }, deadline - performance.now());
    return post(connections.pool(url.origin, addresses)).catch(async (error: unknown) => {
      if (!isUnanswered(error)) throw error;
      const fresh = connections.newPool(url.origin, addresses);
      return post(fresh).finally(() => fresh.destroy());
    });
  }

  return {
    send: (request) =>
      attempt(request).then(
        (response) => outcomeOf(response, clock.now()),
        (error: unknown) => ({ ...resultOf({ error: errorOf(error) }), retry_after_ms: null }),
      ),
    close: connections.close,
  };
}

/** Checks the URL again, because the endpoint may have been created under another policy. */
function destination(text: string, policy: DestinationPolicy): URL {
  const parsed = parseDestination(text, policy);
  if (parsed.ok) return parsed.value;
  const own = URL.canParse(text) && isOwnOrigin(new URL(text), policy);
  throw new AttemptFailure(own ? 'own_origin' : 'blocked_address');
}

function outcomeOf({ status, retryAfter }: ReceiverResponse, now: number): SendResult {
  const error = status < 300 ? null : status < 400 ? 'redirect' : 'http_status';
  return {
    http_status: status,
    error,
    retry_after_ms: error === null ? null : parseRetryAfter(retryAfter, now),
  };
}

/** undici's own errors occur after connecting: the connection broke, or the response was not HTTP. */
function errorOf(error: unknown): DeliveryError {
  return error instanceof AttemptFailure ? error.kind : 'connect';
}

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** The forms of a date that recipients must take (RFC 9110, 5.6.7); senders may use the first alone. */
function httpDates(date: Date): string[] {
  const utc = date.toUTCString();
  const [, day = '', month = '', year = '', time = ''] = utc.split(' ');
  return [
    utc,
    `${WEEKDAYS[date.getUTCDay()]}, ${day}-${month}-${year.slice(-2)} ${time} GMT`,
    `${utc.slice(0, 3)} ${month} ${day.replace(/^0/, ' ')} ${time} ${year}`,
  ];
}

/**
 * Parses a Retry-After header (RFC 9110, 10.2.3): seconds, or a date in one of the three forms of 5.6.7.
 * @param now milliseconds
 * @returns milliseconds, at most 24 hours; null if invalid
 */
export function parseRetryAfter(value: string | readonly string[] | undefined, now: number): number | null {
  const text = (typeof value === 'string' ? value : value?.[0])?.trim() ?? '';
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, MAX_RETRY_AFTER_MS);
  const date = new Date(text.endsWith('GMT') ? text : `${text} GMT`);
  // `Date` accepts almost anything; only the three forms survive the round trip.
  if (Number.isNaN(date.getTime()) || !httpDates(date).includes(text)) return null;
  return Math.min(Math.max(0, date.getTime() - now), MAX_RETRY_AFTER_MS);
}
