import type { Logger } from 'pino';
import { appendSafely, toNewEvents } from '../../commands/handle.ts';
import { newId } from '../../commands/new-id.ts';
import { deliveriesStream } from '../../commands/webhooks/queue-deliveries.ts';
import { type DeliveryEvent, deliveryEvents } from '../../domain/webhooks/events.ts';
import { type EventStore, type NewEvent, type Position, StreamExpired } from '../../event-store/port.ts';
import { backoffMs } from '../../platform/backoff.ts';
import { endsWithin, pause } from '../../platform/pause.ts';
import { withoutTrace } from '../../platform/spans.ts';
import type { DeliveryClaim } from './claims.ts';

type Attempted = Extract<DeliveryEvent, { type: 'webhooks.DeliveryAttempted.v1' }>;

interface Outcome {
  readonly claim: DeliveryClaim;
  readonly stream: string;
  readonly event: NewEvent;
}

export interface JournalOptions {
  readonly store: EventStore;
  readonly log: Logger;
  /** Called with the claims whose outcomes are durable and the last outcome's position; null: not known. */
  readonly onWritten: (claims: readonly DeliveryClaim[], position: Position | null) => void;
  /** Called with a claim whose outcome is never written, because the delivery's metadata has expired. */
  readonly onExpired: (claim: DeliveryClaim) => void;
}

const RETRY = { firstMs: 250, mostMs: 4_000 } as const;
/** Keeps an append far below 1 MiB. */
const MAX_APPEND_EVENTS = 500;
/** With more outcomes than this waiting to become durable, no attempt starts. */
const MAX_UNWRITTEN = 2_000;

/**
 * Writes the outcomes of attempts by group commit: outcomes that arrive during one write share the next. A failed append,
 * or one of unknown outcome, is retried with backoff; projections use the first outcome of an attempt.
 */
export const createJournal = ({ store, log, onWritten, onExpired }: JournalOptions) => {
  const closing = new AbortController();
  let waiting: Outcome[] = [];
  let unwritten = 0;
  let flushing: Promise<void> | null = null;
  let failures = 0;
  let lastError: unknown = null;

  const append = async (outcomes: readonly Outcome[]): Promise<boolean> => {
    const stream = (outcomes[0] as Outcome).stream;
    try {
      const events = outcomes.map(({ event }) => event);
      const { position } = await appendSafely(store, stream, 'any', events, () => !closing.signal.aborted);
      unwritten -= outcomes.length;
      onWritten(
        outcomes.map(({ claim }) => claim),
        position,
      );
      return true;
    } catch (error) {
      if (error instanceof StreamExpired) {
        unwritten -= outcomes.length;
        for (const { claim } of outcomes) onExpired(claim);
        return true;
      }
      waiting.push(...outcomes);
      lastError = error;
      return false;
    }
  };

  const flush = async (): Promise<void> => {
    while (waiting.length > 0 && !closing.signal.aborted) {
      const batch = waiting;
      waiting = [];
      const streams = [...Map.groupBy(batch, ({ stream }) => stream).values()];
      const taken = await Promise.all(streams.flatMap(inParts).map(append));
      if (taken.includes(true)) failures = 0;
      if (taken.includes(false)) await backOff();
    }
    flushing = null;
  };

  /** Waits on a timer, so that an immediate rejection by the store does not block the event loop. */
  const backOff = async (): Promise<void> => {
    failures += 1;
    const retryInMs = backoffMs(failures, RETRY);
    log.warn(
      { error: String(lastError), outcomes: unwritten, retry_in_ms: retryInMs },
      'delivery outcomes were not written; retry scheduled',
    );
    await pause(retryInMs, closing.signal);
  };

  return {
    add: (claim: DeliveryClaim, data: Attempted['data'], at: number): void => {
      const id = newId();
      const event: Attempted = { type: 'webhooks.DeliveryAttempted.v1', data };
      const context = { correlationId: id, causationId: claim.delivery_id, at, partnerId: claim.partner_id };
      const stream = deliveriesStream(claim.webhook_id, new Date(claim.created_at).toISOString());
      for (const made of toNewEvents(deliveryEvents, [event], context)) {
        waiting.push({ claim, stream, event: made });
        unwritten += 1;
      }
      // After this turn of the event loop, so that outcomes of the same turn share the write.
      flushing ??= withoutTrace(() => new Promise<void>((resolve) => setImmediate(resolve)).then(flush));
    },

    isBehind: (): boolean => unwritten > MAX_UNWRITTEN,

    /** Writes waiting outcomes for at most `ms`, then ends. Attempts with unwritten outcomes are repeated elsewhere. */
    close: async (ms: number): Promise<void> => {
      await endsWithin(flushing ?? Promise.resolve(), ms);
      closing.abort();
    },
  };
};

const inParts = (outcomes: readonly Outcome[]): Outcome[][] =>
  Array.from({ length: Math.ceil(outcomes.length / MAX_APPEND_EVENTS) }, (_, part) =>
    outcomes.slice(part * MAX_APPEND_EVENTS, (part + 1) * MAX_APPEND_EVENTS),
  );
