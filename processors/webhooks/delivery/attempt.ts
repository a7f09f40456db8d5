import type { AttemptOutcome } from '../../../commands/webhooks/record-attempts.ts';
import { isoTime } from '../../../domain/kernel/time.ts';
import { type AttemptResult, PAYLOAD_PREFIX } from '../../../domain/webhooks/events.ts';
import { afterAttempt } from '../../../domain/webhooks/schedule.ts';
import type { EventStore } from '../../../event-store/port.ts';
import type { Clock } from '../../../platform/clock/clock.ts';
import { inSpan } from '../../../platform/telemetry/spans.ts';
import { causesIn } from '../../causes.ts';
import type { DeliveryClaim } from './claims.ts';
import type { SendRequest, SendResult, signatureHeaders } from './sender.ts';

/** URL and signing secrets of an endpoint, the newest secret first. */
export interface Target {
  readonly url: string;
  readonly secrets: readonly Buffer[];
}

/** null: not there; `unreadable`: its key is destroyed. */
export type Body = Buffer | 'unreadable' | null;

export interface AttemptDeps {
  readonly clock: Clock;
  /** Loads the current targets; deleted and disabled endpoints are left out. */
  readonly targetsOf: (webhookIds: readonly string[]) => Promise<ReadonlyMap<string, Target>>;
  /**
   * Loads the body of an event, from memory or as it is stored. A claim without a body is released and made again until the body is there
   * or expires.
   * Concurrent calls may share a query.
   */
  readonly bodyOf: (eventId: string, manner: 'remembered' | 'stored') => Promise<Body>;
  readonly sign: typeof signatureHeaders;
  /** Sends the request. Never throws, and ends within the time limit of an attempt. */
  readonly send: (request: SendRequest) => Promise<SendResult>;
  readonly retryBaseMs: number;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
  /** Called at each start. `lagMs`: milliseconds since the event's `created_at`; null if this is not the first attempt. */
  readonly onStart: (lagMs: number | null) => void;
}

/**
 * Makes one attempt.
 * @returns null if there is no body or no target at the moment; `unreadable` if the body's day key is destroyed
 * @throws errors of the deps
 */
export async function makeAttempt(
  deps: AttemptDeps,
  claim: DeliveryClaim,
  target: Target | undefined,
  body: Body,
): Promise<AttemptOutcome | 'unreadable' | null> {
  const { clock, sign, send, retryBaseMs: baseMs, random, onStart } = deps;
  const { delivery_id, webhook_id, partner_id, event_id, cycle, attempt } = claim;
  if (target === undefined || body === null) return null;
  if (body === 'unreadable') return body;

  const started = clock.now();
  const isFirst = cycle === 1 && attempt === 1;
  onStart(isFirst ? Math.max(0, started - Date.parse(claim.created_at)) : null);
  const secrets = claim.newest_secret_only ? target.secrets.slice(0, 1) : target.secrets;
  const headers = sign(secrets, event_id, started, body);
  const sentAt = performance.now();
  const { retry_after_ms, ...result } = await send({ url: target.url, headers, body, partner_id });
  // The wall clock may have jumped since: it must neither end the retries nor put them off.
  const tookMs = Math.round(performance.now() - sentAt);
  const ended = started + tookMs;

  const after = afterAttempt(
    { attempt, ranMs: claim.ran_ms + tookMs, error: result.error, retryAfterMs: retry_after_ms },
    { baseMs, random: random() },
  );
  return {
    delivery_id,
    webhook_id,
    partner_id,
    cycle,
    attempt,
    started_at: isoTime(started),
    ended_at: isoTime(ended),
    state: after.state,
    ...result,
    signed_by: secrets.length > 1 ? 'newest_and_previous' : 'newest',
    next_attempt_at: after.delayMs === null ? null : isoTime(ended + after.delayMs),
  };
}

/**
 * Runs an attempt in a span linked to the trace of its event. The span holds no URL, because receivers' URLs may contain
 * secrets, and receivers get no `traceparent`.
 */
export async function inAttemptSpan(
  store: EventStore,
  { webhook_id, delivery_id, event_id, attempt }: DeliveryClaim,
  work: (ended: (sent: Pick<AttemptResult, 'http_status' | 'error'>) => void) => Promise<void>,
): Promise<void> {
  const causes = await causesIn(store, `${PAYLOAD_PREFIX}${event_id}`);
  await inSpan(
    () => ({
      name: 'attempt delivery',
      kind: 'client',
      attributes: {
        'http.request.method': 'POST',
        'messaging.message.id': event_id,
        'doorplate.webhook_id': webhook_id,
        'doorplate.delivery_id': delivery_id,
        'doorplate.attempt': attempt,
      },
      causes,
    }),
    (note) =>
      work(({ http_status, error }) => {
        if (http_status !== null) note({ 'http.response.status_code': http_status });
        if (error !== null) note({ 'error.type': error });
      }),
  );
}
