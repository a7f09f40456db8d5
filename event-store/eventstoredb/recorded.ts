import type { RecordedEvent as ClientEvent, ResolvedEvent } from '@eventstore/db-client';
import type { EventMetadata, Position, RecordedEvent } from '../port.ts';

/** Uses the commit position alone, because each append of this port is its own transaction. */
export const positionOf = (event: ClientEvent): Position => {
  if (!event.position) throw new Error(`the server gave no position for the event ${event.id}`);
  return event.position.commit as Position;
};

export const toRecordedEvent = (event: ClientEvent): RecordedEvent => ({
  position: positionOf(event),
  stream: event.streamId,
  revision: Number(event.revision),
  id: event.id,
  type: event.type,
  data: event.data as object,
  metadata: event.metadata as unknown as EventMetadata,
});

/** Returns whether the server wrote the event: stream metadata, tombstones, statistics. */
export const isSystemEvent = ({ type, streamId }: ClientEvent): boolean =>
  type.startsWith('$') || streamId.startsWith('$');

/** Returns the events of a read; links are not resolved, so each result has one. */
export const eventsOf = (resolved: readonly ResolvedEvent[]): ClientEvent[] =>
  resolved.flatMap(({ event }) => (event ? [event] : []));
