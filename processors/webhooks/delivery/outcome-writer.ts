import type { Logger } from 'pino';
import { deliveriesStream } from '../../../commands/webhooks/queue-deliveries.ts';
import {
  type AttemptOutcome,
  appendOutcomes,
  attemptEvent,
} from '../../../commands/webhooks/record-attempts.ts';
import { inChunks } from '../../../domain/kernel/chunks.ts';
import { type EventStore, type NewEvent, OutcomeUnknown, type Position } from '../../../event-store/port.ts';
import { backoffMs, endsWithin, nextTurn, pause } from '../../../platform/clock/waiting.ts';
import { withoutTrace } from '../../../platform/telemetry/spans.ts';
import type { DeliveryClaim } from './claims.ts';

interface UnwrittenOutcome {
  readonly claim: DeliveryClaim;
  readonly stream: string;
  readonly event: NewEvent;
}

/** Outcomes of one stream that share an append. */
interface Part {
  readonly stream: string;
  readonly outcomes: readonly UnwrittenOutcome[];
  /** Whether an earlier append of them may be stored. */
  readonly isUncertain: boolean;
}

export interface OutcomeWriterOptions {
  readonly store: EventStore;
  readonly log: Logger;
  /** Called with the claims whose outcomes are durable and the last outcome's position; null: not known. */
  readonly onWritten: (claims: readonly DeliveryClaim[], position: Position | null) => void;
  /** Called with a claim whose outcome is never written, because the delivery's metadata was forgotten after 90 days. */
  readonly onForgotten: (claim: DeliveryClaim) => void;
}

const RETRY = { firstMs: 250, mostMs: 4_000 } as const;
/** Keeps an append far below 1 MiB. */
const MAX_APPEND_EVENTS = 500;
/** With more outcomes than this waiting to become durable, no attempt starts. */
const MAX_UNWRITTEN = 2_000;

/**
 * Writes the outcomes of attempts by group commit: outcomes that arrive during one write share the next. A failed append,
 * or one of unknown outcome, is retried with backoff; the latter with the same events alone, because a store rejects an
 * append of which it has some events and not the others.
 */
export class OutcomeWriter {
  readonly #options: OutcomeWriterOptions;
  readonly #closing = new AbortController();
  #waiting: UnwrittenOutcome[] = [];
  #uncertain: Part[] = [];
  #unwritten = 0;
  #flushing: Promise<void> | null = null;
  #failures = 0;
  #lastError: unknown = null;

  constructor(options: OutcomeWriterOptions) {
    this.#options = options;
  }

  /** `at`: when the attempt ended, milliseconds. */
  add(claim: DeliveryClaim, outcome: AttemptOutcome, at: number): void {
    const stream = deliveriesStream(claim.webhook_id, new Date(claim.created_at).toISOString());
    this.#waiting.push({ claim, stream, event: attemptEvent(outcome, at) });
    this.#unwritten += 1;
    // After this turn of the event loop, so that outcomes of the same turn share the write.
    this.#flushing ??= withoutTrace(() => nextTurn().then(() => this.#flush()));
  }

  isBehind(): boolean {
    return this.#unwritten > MAX_UNWRITTEN;
  }

  /** Writes waiting outcomes for at most `ms`, then ends. Attempts with unwritten outcomes are repeated elsewhere. */
  async close(ms: number): Promise<void> {
    await endsWithin(this.#flushing ?? Promise.resolve(), ms);
    this.#closing.abort();
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length + this.#uncertain.length > 0 && !this.#closing.signal.aborted) {
      const parts = [...this.#uncertain, ...partsOf(this.#waiting)];
      this.#waiting = [];
      this.#uncertain = [];
      const appended = await Promise.all(parts.map((part) => this.#append(part)));
      if (appended.includes(true)) this.#failures = 0;
      if (appended.includes(false)) await this.#backOff();
    }
    this.#flushing = null;
  }

  async #append(part: Part): Promise<boolean> {
    const { store, onWritten, onForgotten } = this.#options;
    const { stream, outcomes } = part;
    try {
      const events = outcomes.map(({ event }) => event);
      const position = await appendOutcomes(store, stream, events, () => !this.#closing.signal.aborted);
      this.#unwritten -= outcomes.length;
      const claims = outcomes.map(({ claim }) => claim);
      if (position === 'forgotten') for (const claim of claims) onForgotten(claim);
      else onWritten(claims, position);
      return true;
    } catch (error) {
      if (part.isUncertain || error instanceof OutcomeUnknown) {
        this.#uncertain.push({ ...part, isUncertain: true });
      } else this.#waiting.push(...outcomes);
      this.#lastError = error;
      return false;
    }
  }

  /** Waits on a timer, so that an immediate rejection by the store does not block the event loop. */
  async #backOff(): Promise<void> {
    this.#failures += 1;
    const retryInMs = backoffMs(this.#failures, RETRY);
    this.#options.log.warn(
      { error: String(this.#lastError), outcomes: this.#unwritten, retry_in_ms: retryInMs },
      'delivery outcomes were not written; retry scheduled',
    );
    await pause(retryInMs, this.#closing.signal);
  }
}

const partsOf = (waiting: readonly UnwrittenOutcome[]): Part[] =>
  [...Map.groupBy(waiting, ({ stream }) => stream)].flatMap(([stream, ofStream]) =>
    inChunks(ofStream, MAX_APPEND_EVENTS).map((outcomes) => ({ stream, outcomes, isUncertain: false })),
  );
