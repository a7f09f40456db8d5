import type { EventStore } from '../event-store/port.ts';
import { isTracing } from '../platform/spans.ts';

const LOOKED_AT = 8;

/** The span in which the newest event of a stream was appended: what led to the work on it. Read only for traces. */
export const causesIn = async (store: EventStore, stream: string): Promise<string[]> => {
  if (!isTracing()) return [];
  try {
    for await (const { metadata } of store.readStream(stream, { direction: 'backwards', limit: LOOKED_AT })) {
      if (metadata.traceparent !== undefined) return [metadata.traceparent];
    }
  } catch {
    // Work goes on without its trace.
  }
  return [];
};
