import { DAY } from '../domain/kernel/time.ts';
import { ENRICHMENT_PREFIX, nextEnrichmentStream } from '../domain/lookup/events.ts';
import { EXPIRED_PREFIX, TAB_PREFIX } from '../domain/sessions/events.ts';
import { nextTabStream } from '../domain/sessions/tab.ts';
import { nextSignalsStream, SIGNALS_PREFIX } from '../domain/signals/events.ts';
import { USAGE_PREFIX } from '../domain/usage/events.ts';
import { DELIVERIES_PREFIX, PAYLOAD_PREFIX } from '../domain/webhooks/events.ts';
import {
  type EventStore,
  isHidden,
  type Position,
  type Revision,
  WrongExpectedRevision,
} from '../event-store/port.ts';
import type { Clock } from '../platform/clock/clock.ts';
import { throttled } from '../platform/clock/waiting.ts';
import type { ConsumerProgress } from './consumers.ts';
import type { ProcessorDeps } from './deps.ts';

/** Progress of read models or processors. */
export interface Reached {
  /** Waits until all named ones reach the position; false after the time limit. */
  reached(names: readonly string[], position: Position | null, timeoutMs: number): Promise<boolean>;
}

/** A stream with expired events, as the read model knows it. */
export interface ExpiredStream {
  readonly stream: string;
  /** Revision of the stream's last event in the read model; meaningless while it `lives`. */
  readonly last_revision: Revision;
  /** Whether the stream holds something that has not expired. */
  readonly lives: boolean;
}

interface RetireDeps {
  readonly store: EventStore;
  readonly consumerProgress: ConsumerProgress;
  /** Position that all consumers have passed; it covers every expired event of the stream that the read model knows. */
  readonly passed: Position;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Deletes an expired stream, or truncates one that still has unexpired events before the first of them. Idempotent.
 * @returns false if it is too early; a later sweep retries
 * @throws the port's errors but WrongExpectedRevision
 */
export async function retireStream(deps: RetireDeps, known: ExpiredStream): Promise<boolean> {
  const { store, consumerProgress, passed, clock, signal } = deps;
  const { stream, last_revision, lives } = known;
  const further = lives ? null : await expire(store, stream, last_revision);
  if (further === 'done') return true;

  // The read model knows of unexpired events, or the stream has grown past what the read model knows.
  const head = await store.head();
  // Hidden events too, which the store would pass over in one go: a browser tab may have left a million of them.
  for await (const event of throttled(store.readStream(stream, { includeExpired: true }))) {
    if (signal.aborted) return false;
    if (isHidden(event, clock.now())) continue;
    // Hidden events of the stream precede its first visible one in the log, too.
    if (event.position > passed) return false;
    await store.truncateBefore(stream, event.revision);
    return true;
  }
  // The last event is hidden, so its position is unknown, but it cannot be past the head.
  if (further === null || !(await consumerProgress.waitFor(head, signal))) return false;
  // The mismatch may come from an unexpired event that no reader sees yet; a later sweep decides.
  if (!(await isReadable(store, stream, further))) return false;
  return (await expire(store, stream, further)) === 'done';
}

/** Consumers have not read what is to be deleted; nothing is lost by trying again. */
export class ConsumersBehind extends Error {}

/** How often a deletion waits anew for consumers, and for events that are appended meanwhile. */
const MAX_WAITS = 12;

/**
 * Deletes a stream before its time, with all events that are appended meanwhile, after its consumers have passed them. Idempotent.
 * @returns false if there was no such stream
 * @throws ConsumersBehind, and the port's errors but WrongExpectedRevision
 */
export async function deleteStream(
  { store, consumerProgress, signal }: Pick<RetireDeps, 'store' | 'consumerProgress' | 'signal'>,
  stream: string,
): Promise<boolean> {
  for (let wait = 0; wait < MAX_WAITS && !signal.aborted; wait += 1) {
    const read = { direction: 'backwards', limit: 1, includeExpired: true } as const;
    const [last] = await Array.fromAsync(store.readStream(stream, read));
    if (last === undefined) return false;
    if (!(await consumerProgress.waitFor(last.position, signal))) continue;
    if ((await expire(store, stream, last.revision)) === 'done') return true;
  }
  throw new ConsumersBehind(`${stream} has not been read by all consumers`);
}

async function isReadable(store: EventStore, stream: string, revision: Revision): Promise<boolean> {
  const read = { from: revision, limit: 1, includeExpired: true };
  return (await Array.fromAsync(store.readStream(stream, read))).length > 0;
}

/** @returns the stream's last revision if it is past `last` */
async function expire(store: EventStore, stream: string, last: Revision): Promise<'done' | Revision | null> {
  try {
    await store.expire(stream, last);
    return 'done';
  } catch (error) {
    if (!(error instanceof WrongExpectedRevision)) throw error;
    return error.actual;
  }
}

/** Longer than any resend, retry or cached state can refer to a deleted stream. */
const NAMES_KEPT_DAYS = 30;

/**
 * Prefixes of stream names that are never used again: made of a day, a generation or a unique id. A reveal's stream name
 * derives from an Idempotency-Key that a partner may resend, so it stays for ever and no reveal is billed twice.
 */
const FORGOTTEN = [
  TAB_PREFIX,
  ENRICHMENT_PREFIX,
  PAYLOAD_PREFIX,
  DELIVERIES_PREFIX,
  USAGE_PREFIX,
  SIGNALS_PREFIX,
  EXPIRED_PREFIX,
];

/** Returns the next generation's stream: while the store knows it, earlier generations must still lead to it. */
const successorOf = (stream: string): string | null =>
  stream.startsWith(TAB_PREFIX)
    ? nextTabStream(stream)
    : stream.startsWith(ENRICHMENT_PREFIX)
      ? nextEnrichmentStream(stream)
      : stream.startsWith(SIGNALS_PREFIX)
        ? nextSignalsStream(stream)
        : null;

/** Forgets the names of streams that were deleted 30 days ago. */
export async function forgetNames({ store, clock }: Pick<ProcessorDeps, 'store' | 'clock'>): Promise<void> {
  const before = clock.now() - NAMES_KEPT_DAYS * DAY;
  await store.forgetNames({ prefixes: FORGOTTEN, before, successorOf });
}
