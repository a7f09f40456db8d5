import { AppendTooLarge, MAX_APPEND_BYTES, type NewEvent } from './port.ts';

export interface Serialised {
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Validates and serializes an append for either store: at least one event, distinct UUIDs as ids (EventStoreDB would
 * store a repeated id twice), no system type, at most 1 MiB.
 * @throws AppendTooLarge; TypeError for a bug of the caller
 */
export const serialiseAppend = (stream: string, events: readonly NewEvent[]): Serialised[] => {
  if (stream === '' || stream.startsWith('$')) throw new TypeError(`not a stream name: '${stream}'`);
  if (events.length === 0) throw new TypeError(`an append without events to ${stream}`);
  if (new Set(events.map((event) => event.id)).size !== events.length) {
    throw new TypeError(`a repeated event id in one append to ${stream}`);
  }
  let bytes = 0;
  const serialised = events.map(({ id, type, data, metadata }) => {
    if (!UUID.test(id)) throw new TypeError(`not an event id: '${id}'`);
    if (type === '' || type.startsWith('$')) throw new TypeError(`not an event type: '${type}'`);
    const row = { id, type, data: JSON.stringify(data), metadata: JSON.stringify(metadata) };
    bytes += Buffer.byteLength(row.data) + Buffer.byteLength(row.metadata);
    return row;
  });
  if (bytes > MAX_APPEND_BYTES) throw new AppendTooLarge(`${bytes} bytes in one append to ${stream}`);
  return serialised;
};
