import type pg from 'pg';
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

/** The events of a batch that a projection applies. */
export const relevantTo = (
  { types }: Projection,
  events: readonly RecordedEvent[],
): readonly RecordedEvent[] =>
  types === undefined ? events : events.filter(({ type }) => types.includes(type));
