import type pg from 'pg';
import { isLaterVersion } from '../domain/kernel/events.ts';
import type { RecordedEvent } from '../event-store/port.ts';

/**
 * One read model: how events become rows. Its tables are named without a schema: the search path decides
 * whether they are the ones in use (`read`) or those of a rebuild.
 */
export interface Projection {
  readonly name: string;
  /** Written by this projection alone. */
  readonly tables: readonly string[];
  /** Stored names of the events that it applies. Left out: all of them. */
  readonly types?: readonly string[];
  /**
   * Applies events in their order, in the caller's transaction. Must come out the same however the events
   * are cut into batches.
   */
  apply(events: readonly RecordedEvent[], db: pg.ClientBase): Promise<void>;
}

/** The events of a batch that a projection applies, or stops at: later versions of what it applies are among them. */
export const relevantTo = (
  { types }: Projection,
  events: readonly RecordedEvent[],
): readonly RecordedEvent[] => {
  if (types === undefined) return events;
  const isKnown = (type: string): boolean => types.includes(type);
  return events.filter(({ type }) => isKnown(type) || isLaterVersion(type, isKnown));
};
