import { readOrReason, type StoredEntry } from '../../domain/billing/audit-ledger.ts';
import { gatherReceipts, type Receipts } from '../../domain/billing/audit-reveals.ts';
import { type BillingEvent, billingEvents, billingStream } from '../../domain/billing/events.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { REVEAL_PREFIX, revealExpiryEvents } from '../../domain/reveals/events.ts';
import { expiredStream } from '../../domain/sessions/events.ts';
import type { EventStore, Position, RecordedEvent, Revision } from '../../event-store/port.ts';

const BATCH = 2_000;

/** Reads a partner's ledger up to a log position, without validation. */
export async function readLedger(
  store: EventStore,
  partnerId: string,
  upTo: Position,
): Promise<StoredEntry[]> {
  const stored: StoredEntry[] = [];
  for await (const { position, revision, type, data } of store.readStream(billingStream(partnerId))) {
    if (position <= upTo) stored.push({ revision, position, type, data });
  }
  return stored;
}

/** An entry as auditors see it: its number is its revision. */
export type NumberedEntry = { readonly number: number } & BillingEvent['data'];

/**
 * Reads the entries of these numbers, in ascending order, without checking the chain. What is not there, or not an entry, is
 * left out, so that it shows as a gap.
 */
export async function readEntries(
  store: EventStore,
  partnerId: string,
  numbers: readonly number[],
): Promise<NumberedEntry[]> {
  const [first, last] = [numbers.at(0), numbers.at(-1)];
  if (first === undefined || last === undefined) return [];
  const wanted = new Set(numbers);
  const entries: NumberedEntry[] = [];
  const range = { from: first as Revision, limit: last - first + 1 };
  for await (const stored of store.readStream(billingStream(partnerId), range)) {
    if (stored.revision > last) break;
    if (wanted.has(stored.revision)) entries.push(...numberedEntry(stored));
  }
  return entries;
}

/** Reads the last readable entry of a partner's ledger; null before the first. */
export async function readLastEntry(store: EventStore, partnerId: string): Promise<NumberedEntry | null> {
  // Alone first: without a limit a store reads a page of a thousand.
  for (const limit of [{ limit: 1 }, {}]) {
    const options = { direction: 'backwards', ...limit } as const;
    for await (const stored of store.readStream(billingStream(partnerId), options)) {
      const [entry] = numberedEntry(stored);
      if (entry) return entry;
    }
  }
  return null;
}

function numberedEntry({ revision, type, data }: RecordedEvent): NumberedEntry[] {
  const event = readOrReason(billingEvents, { type, data }, 'entry');
  return typeof event === 'string' ? [] : [{ number: revision, ...event.data }];
}

/** A partner's reveals as the store holds them. */
export interface StoredReveals {
  readonly receipts: Receipts;
  /** Ids of reveals that have expired, in the streams `expired-…`. */
  readonly expired: ReadonlySet<string>;
}

/**
 * Reads the partner's reveals from the store, expired or not, up to a log position. Scans the whole log, because an
 * audit must not trust the read models.
 * @param maxReveals throws when the store has more
 */
export async function readReceipts(
  store: EventStore,
  partnerId: string,
  upTo: Position,
  maxReveals = Number.POSITIVE_INFINITY,
): Promise<StoredReveals> {
  const { receipts, add } = gatherReceipts();
  const expired = new Set<string>();
  const prefixes = [REVEAL_PREFIX, expiredStream(partnerId, '')];
  for await (const event of readLog(store, prefixes, null, upTo)) {
    if (!event.stream.startsWith(REVEAL_PREFIX)) for (const id of expiredIn(event)) expired.add(id);
    else if ((event.data as { partner_id?: unknown } | null)?.partner_id === partnerId) add(event);
    if (Math.max(receipts.byId.size, expired.size) > maxReveals)
      throw new Error(`partner ${partnerId} has more than ${maxReveals} reveals in the store`);
  }
  return { receipts, expired };
}

/** Reads the ids of the partner's reveals whose expiry was recorded after a log position. */
export async function readExpiredSince(
  store: EventStore,
  partnerId: string,
  after: Position,
): Promise<readonly string[]> {
  const head = await store.head();
  if (head === null || head <= after) return [];
  const events = await Array.fromAsync(readLog(store, [expiredStream(partnerId, '')], after, head));
  return events.flatMap(expiredIn);
}

const expiredIn = (event: RecordedEvent): string[] =>
  (readEvent(revealExpiryEvents, event)?.data.reveals ?? []).map(([id]) => id);

/** Reads events after one position and up to another, which the log must have reached. */
async function* readLog(
  store: EventStore,
  prefixes: readonly string[],
  after: Position | null,
  upTo: Position,
): AsyncGenerator<RecordedEvent> {
  const done = new AbortController();
  const options = { after, prefixes, batchSize: BATCH, includeExpired: true, signal: done.signal };
  for await (const { events, position } of store.follow(options)) {
    for (const event of events) if (event.position <= upTo) yield event;
    if (position >= upTo) return done.abort();
  }
}
