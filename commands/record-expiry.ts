import type { EventSchemas } from '../domain/kernel/events.ts';
import { utcDay } from '../domain/kernel/time.ts';
import { expiredStream } from '../domain/sessions/events.ts';
import type { EventStore, Position } from '../event-store/port.ts';
import { conflictRetries } from './conflicts.ts';
import { appendSafely, type CommandContext, toNewEvents } from './handle.ts';

/**
 * Records the expiry of a partner's items by their ids alone. A crash before the append is confirmed writes the event
 * again; projections ignore the repeat.
 * @returns its log position; null if the store does not report it
 * @throws the port's errors
 */
export const recordExpiry = async (
  store: EventStore,
  partnerId: string,
  schemas: EventSchemas,
  event: { readonly type: string; readonly data: object },
  context: CommandContext,
): Promise<Position | null> => {
  const stream = expiredStream(partnerId, utcDay(context.at));
  const events = toNewEvents(schemas, [event], { ...context, partnerId });
  const afterConflict = conflictRetries();
  for (;;) {
    try {
      const [last] = await Array.fromAsync(store.readStream(stream, { direction: 'backwards', limit: 1 }));
      return (await appendSafely(store, stream, last?.revision ?? 'no_stream', events)).position;
    } catch (error) {
      // Another sweep may append for the same partner.
      await afterConflict(error);
    }
  }
};
