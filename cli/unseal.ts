import { readEvent } from '../domain/kernel/events.ts';
import { sessionEvents } from '../domain/sessions/events.ts';
import { signalEvents } from '../domain/signals/events.ts';
import { payloadEvents } from '../domain/webhooks/events.ts';
import type { DayKeys } from '../platform/day-keys.ts';

const GONE = '(its key is gone)';

/** Opens the sealed parts of an event's data while the key of their day exists. */
export const unseal = async (
  dayKeys: DayKeys,
  stored: { readonly type: string; readonly data: object },
): Promise<object> => {
  const open = async (day: string, sealed: string, about: string): Promise<string | null> => {
    const key = await dayKeys.of(day);
    try {
      return key?.open(Buffer.from(sealed, 'base64'), about).toString('utf8') ?? null;
    } catch {
      return null;
    }
  };
  const json = (text: string | null): unknown => (text === null ? GONE : JSON.parse(text));

  const session = readEvent(sessionEvents, stored);
  if (session?.type === 'sessions.SessionCreated.v1') {
    const { sealed, first_seen_at, session_id } = session.data;
    return { ...stored.data, sealed: json(await open(first_seen_at.slice(0, 10), sealed, session_id)) };
  }
  const payload = readEvent(payloadEvents, stored);
  if (payload) {
    const { day, sealed, event_id } = payload.data;
    return { ...stored.data, sealed: json(await open(day, sealed, event_id)) };
  }
  const signals = readEvent(signalEvents, stored);
  if (signals) {
    const { day, clues } = signals.data;
    const opened = clues.map(async (clue) => ({
      ...clue,
      sealed: (await open(day, clue.sealed, clue.domain)) ?? GONE,
    }));
    return { ...stored.data, clues: await Promise.all(opened) };
  }
  return stored.data;
};
