import type pg from 'pg';
import { isLaterVersion } from '../domain/kernel/events.ts';
import type { RecordedEvent } from '../event-store/port.ts';

/** A read model. Its tables are named without a schema, because the search path selects live tables or a rebuild's. */
export interface Projection {
  readonly name: string;
  /** Only this projection writes to them. */
  readonly tables: readonly string[];
  /** Types of the applied events; omitted: all. */
  readonly types?: readonly string[];
  /** SQL that adds to a rebuild's tables the live rows whose events the log no longer holds. */
  readonly carryOver?: string;
  /** Applies events in order in the caller's transaction. The result must not depend on how events are batched. */
  apply(events: readonly RecordedEvent[], db: pg.ClientBase): Promise<void>;
}

/**
 * Returns the settings of a session that applies projections to the tables of a schema. A server crash loses only rows that no reader
 * has seen. Rows are found by their keys: a plan that was cached while a table was small must not read all of it, or of an index, for
 * each batch once it is large.
 */
export const sessionSettings = (schema: string): string =>
  `-c search_path=${schema} -c synchronous_commit=off -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off`;

/** Selects the events that a projection applies, including later versions of them, which stop it. */
export function relevantTo(
  { types }: Projection,
  events: readonly RecordedEvent[],
): readonly RecordedEvent[] {
  if (types === undefined) return events;
  const isKnown = (type: string): boolean => types.includes(type);
  return events.filter(({ type }) => isKnown(type) || isLaterVersion(type, isKnown));
}

const OF_YEAR_ZERO = /^0000-\d{2}-\d{2}T[\d:.]+Z$/;
const FIRST_INSTANT = '0001-01-01T00:00:00.000Z';

/** Replaces NUL and lone surrogates by U+FFFD, and an instant of the year 0 by the first one: PostgreSQL rejects all three. */
function storableText(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  const known = whole.includes('\u0000') ? whole.replaceAll('\u0000', '\ufffd') : whole;
  return OF_YEAR_ZERO.test(known) ? FIRST_INSTANT : known;
}

/**
 * Returns the events with text that PostgreSQL can store. Commands refuse other text, but one event of an earlier release, or one
 * that a command's check missed, would stop its projection for good, and with it the retention of all partners.
 */
export const storableEvents = (events: readonly RecordedEvent[]): readonly RecordedEvent[] =>
  events.map((event) => {
    const data = storable(event.data) as object;
    return data === event.data ? event : { ...event, data };
  });

/** Returns the value itself unless something in it is replaced. */
function storable(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value);
  if (typeof value !== 'object' || value === null) return value;
  const isList = Array.isArray(value);
  let copy: Record<string, unknown> | null = null;
  for (const [name, before] of Object.entries(value)) {
    const after = storable(before);
    if (after === before) continue;
    copy ??= (isList ? [...value] : { ...value }) as Record<string, unknown>;
    copy[name] = after;
  }
  return copy ?? value;
}
