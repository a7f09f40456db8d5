import { inSpan, isTracing, type SpanOf, traceparent } from '../platform/telemetry/spans.ts';
import type { EventStore, RecordedEvent } from './port.ts';

/** Adds a span to each append and read with a parent span; returns the store itself while tracing is off. */
export function tracedStore(store: EventStore, system: 'postgresql' | 'eventstoredb'): EventStore {
  if (!isTracing()) return store;
  const span =
    (operation: string, stream: string): (() => SpanOf) =>
    () => ({
      name: `${operation} ${kindOf(stream)}`,
      kind: 'client',
      attributes: {
        'db.system.name': system,
        'db.operation.name': operation,
        'db.collection.name': kindOf(stream),
      },
    });
  return {
    ...store,
    append: (stream, expected, events) => {
      if (traceparent() === undefined) return store.append(stream, expected, events);
      return inSpan(span('append', stream), (note) => {
        note({ 'db.operation.batch.size': events.length });
        return store.append(stream, expected, events);
      });
    },
    readStream: (stream, options) => {
      if (traceparent() === undefined) return store.readStream(stream, options);
      return reading(store.readStream(stream, options), span('read', stream));
    },
  };
}

/** The span covers the whole read, including the consumer's work between events. */
async function* reading(
  events: AsyncIterable<RecordedEvent>,
  of: () => SpanOf,
): AsyncGenerator<RecordedEvent> {
  const ended = Promise.withResolvers<number>();
  let count = 0;
  const span = inSpan(of, async (note) => note({ 'db.response.returned_rows': await ended.promise }));
  try {
    for await (const event of events) {
      count += 1;
      yield event;
    }
  } finally {
    ended.resolve(count);
    await span;
  }
}

/** Returns the kind of a stream without its id: `enrichment`, `tab`. */
const kindOf = (stream: string): string => stream.slice(0, stream.indexOf('-'));
