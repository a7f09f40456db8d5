import type { RecordedEvent as ClientEvent, ResolvedEvent } from '@eventstore/db-client';
import type { EventMetadata, Position, RecordedEvent } from '../port.ts';

/** The commit position alone: an event written by an append of this port is committed where it stands. */
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

/** The server's own events: metadata of streams, tombstones, statistics. */
export const isSystemEvent = ({ type, streamId }: ClientEvent): boolean =>
  type.startsWith('$') || streamId.startsWith('$');

/** The events among what a read returns; links are not resolved, so each has one. */
export const eventsOf = (resolved: readonly ResolvedEvent[]): ClientEvent[] =>
  resolved.flatMap(({ event }) => (event ? [event] : []));
