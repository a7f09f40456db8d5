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
  /** Applies events in order in the caller's transaction. The result must not depend on how events are batched. */
  apply(events: readonly RecordedEvent[], db: pg.ClientBase): Promise<void>;
}

/** Selects the events that a projection applies, including later versions of them, which stop it. */
export const relevantTo = (
  { types }: Projection,
  events: readonly RecordedEvent[],
): readonly RecordedEvent[] => {
  if (types === undefined) return events;
  const isKnown = (type: string): boolean => types.includes(type);
  return events.filter(({ type }) => isKnown(type) || isLaterVersion(type, isKnown));
};
