import type { EventSchemas } from '../domain/kernel/events.ts';
import { utcDay } from '../domain/kernel/time.ts';
import { expiredStream } from '../domain/sessions/events.ts';
import { type EventStore, type Position, WrongExpectedRevision } from '../event-store/port.ts';
import { appendSafely, type CommandContext, jitter, toNewEvents } from './handle.ts';

const ATTEMPTS = 12;

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
  for (let attempt = 1; ; attempt += 1) {
    try {
      const [last] = await Array.fromAsync(store.readStream(stream, { direction: 'backwards', limit: 1 }));
      return (await appendSafely(store, stream, last?.revision ?? 'no_stream', events)).position;
    } catch (error) {
      // Another sweep tells of the same partner.
      if (!(error instanceof WrongExpectedRevision) || attempt === ATTEMPTS) throw error;
      await jitter(attempt);
    }
  }
};
