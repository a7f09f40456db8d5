import type { EventStore } from '../event-store/port.ts';
import { isTracing } from '../platform/telemetry/spans.ts';

const MAX_EVENTS_READ = 8;

/** Returns the trace parent of the stream's newest traced event, or nothing while tracing is off. */
export async function causesIn(store: EventStore, stream: string): Promise<string[]> {
  if (!isTracing()) return [];
  try {
    for await (const { metadata } of store.readStream(stream, {
      direction: 'backwards',
      limit: MAX_EVENTS_READ,
    })) {
      if (metadata.traceparent !== undefined) return [metadata.traceparent];
    }
  } catch {
    // A trace is optional: an unreadable stream must not stop the work.
  }
  return [];
}
