import type { EventSchemas } from '../domain/kernel/events.ts';
import { utcDay } from '../domain/kernel/time.ts';
import { expiredStream } from '../domain/sessions/events.ts';
import type { EventStore, Position } from '../event-store/port.ts';
import { conflictRetries } from './conflicts.ts';
import { appendSafely, type CommandContext, toNewEvents } from './handle.ts';

/**
 * Writes down by its bare ids what of a partner's has expired. Who dies before it is sure writes it again, which
 * changes no read model.
 * @returns where it stands in the log; null where the store does not say
 * @throws the port's errors
 */
export const tellExpired = async (
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
      // Another sweep writes about the same partner.
      await afterConflict(error);
    }
  }
};
