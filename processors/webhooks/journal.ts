import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import { appendSafely, toNewEvents } from '../../commands/handle.ts';
import { newId } from '../../commands/new-id.ts';
import { deliveriesStream } from '../../commands/webhooks/queue-deliveries.ts';
import { type DeliveryEvent, deliveryEvents } from '../../domain/webhooks/events.ts';
import { type EventStore, type NewEvent, type Position, StreamExpired } from '../../event-store/port.ts';
import { apart } from '../../platform/spans.ts';
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
  /** Told of outcomes that are durable, and the last one's place in the log; null: the store does not say. */
  readonly onWritten: (claims: readonly DeliveryClaim[], position: Position | null) => void;
}

const AGAIN_MS = 250;
/** Events of one append: far below a MiB. */
const AT_ONCE = 500;
/** With more than so many to write, no attempt is begun. */
const MOST_WAITING = 2_000;

/**
 * Writes down what attempts came to, by group commit: what ends while one write is under way shares the next. What
 * fails, or may have, is written again until it is known to be there: the first of an attempt counts.
 */
export const createJournal = ({ store, log, onWritten }: JournalOptions) => {
  let waiting: Outcome[] = [];
  let writing = 0;
  let failed = false;
  let flushing: Promise<void> | null = null;
  let givenUp = false;

  const append = async (outcomes: readonly Outcome[]): Promise<void> => {
    const [first] = outcomes;
    if (!first) return;
    const claims = outcomes.map(({ claim }) => claim);
    try {
      const events = outcomes.map(({ event }) => event);
      const { position } = await appendSafely(store, first.stream, 'any', events, () => !givenUp);
      onWritten(claims, position);
    } catch (error) {
      log.warn(
        { error: String(error), attempts: outcomes.length },
        'outcomes of deliveries were not written',
      );
      // Its metadata are gone by their age, and with them whoever would ask.
      if (!(error instanceof StreamExpired)) waiting.push(...outcomes);
    }
  };

  const flush = async (): Promise<void> => {
    while (waiting.length > 0 && !givenUp) {
      const batch = waiting;
      waiting = [];
      writing = batch.length;
      const streams = [...Map.groupBy(batch, ({ stream }) => stream).values()];
      await Promise.all(streams.flatMap(inParts).map(append));
      writing = 0;
      // The store needs a moment.
      if (failed) await setTimeout(AGAIN_MS);
      failed = false;
    }
    flushing = null;
  };

  return {
    add: (claim: DeliveryClaim, data: Attempted['data'], at: number): void => {
      const id = newId();
      const event: Attempted = { type: 'webhooks.DeliveryAttempted.v1', data };
      const context = { correlationId: id, causationId: claim.delivery_id, at, partnerId: claim.partner_id };
      const stream = deliveriesStream(claim.webhook_id, new Date(claim.created_at).toISOString());
      for (const made of toNewEvents(deliveryEvents, [event], context)) {
        waiting.push({ claim, stream, event: made });
      }
      // After this turn of the event loop, so that what ended in it shares the write.
      flushing ??= apart(() => new Promise<void>((resolve) => setImmediate(resolve)).then(flush));
    },

    isBehind: (): boolean => waiting.length + writing > MOST_WAITING,

    /** Writes what is waiting, then ends; after `ms` it gives up, and those attempts are made again elsewhere. */
    close: async (ms: number): Promise<void> => {
      const done = new AbortController();
      const late = setTimeout(ms, undefined, { signal: done.signal }).catch(() => undefined);
      await Promise.race([late, flushing ?? Promise.resolve()]);
      givenUp = true;
      done.abort();
    },
  };
};

const inParts = (outcomes: readonly Outcome[]): Outcome[][] =>
  Array.from({ length: Math.ceil(outcomes.length / AT_ONCE) }, (_, part) =>
    outcomes.slice(part * AT_ONCE, (part + 1) * AT_ONCE),
  );
