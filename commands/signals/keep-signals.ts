/** Erasing clues of an address: the others of their day are appended to the day's next stream, and the old one is deleted. */
import { readEvent } from '../../domain/kernel/events.ts';
import {
  type Clue,
  nextSignalsStream,
  type SignalEvent,
  signalEvents,
  signalsExpireAt,
} from '../../domain/signals/events.ts';
import type { EventStore, Position, Revision } from '../../event-store/port.ts';
import { throttled } from '../../platform/clock/waiting.ts';
import { appendSafely, type CommandContext, toNewEvents } from '../handle.ts';

/** A day's stream as it was when it was read. */
export interface ReadDay {
  readonly isExpired: boolean;
  /** Clues that are to be erased. */
  readonly matches: number;
  /** null: it is empty. */
  readonly last: { readonly revision: Revision; readonly position: Position } | null;
}

/** Reads a day's stream, and counts what is to be erased. */
export const readDay = (
  store: EventStore,
  stream: string,
  isErased: (clue: Clue) => boolean,
): Promise<ReadDay> => walkDay(store, stream, isErased, async () => undefined);

/**
 * Appends to the day's next stream each batch of this one, without the clues that are erased. Nobody else appends there before this
 * one is deleted. Idempotent: a repeat goes on after what is there.
 * @throws WrongExpectedRevision if another erasure does the same, and the port's other errors
 */
export async function keepOtherSignals(
  store: EventStore,
  stream: string,
  isErased: (clue: Clue) => boolean,
  context: CommandContext,
): Promise<ReadDay> {
  const next = nextSignalsStream(stream);
  const [last] = await Array.fromAsync(store.readStream(next, { direction: 'backwards', limit: 1 }));
  let revision = last?.revision ?? null;
  return walkDay(store, stream, isErased, async (event, stored) => {
    if (revision !== null && stored.revision <= revision) return;
    const { day, clues, left_out } = event.data;
    const data = {
      day,
      batch: event.type === 'signals.SignalsKept.v1' ? event.data.batch : stored.id,
      clues: clues.filter((clue) => !isErased(clue)),
      left_out: [...left_out, ...clues.filter(isErased).map(({ event_id }) => event_id)],
    };
    const events = toNewEvents(signalEvents, [{ type: 'signals.SignalsKept.v1', data }], {
      ...context,
      expiresAt: signalsExpireAt(day),
    });
    revision = (await appendSafely(store, next, revision ?? 'no_stream', events)).revision;
  });
}

async function walkDay(
  store: EventStore,
  stream: string,
  isErased: (clue: Clue) => boolean,
  each: (event: SignalEvent, stored: { readonly id: string; readonly revision: Revision }) => Promise<void>,
): Promise<ReadDay> {
  let isExpired = false;
  let matches = 0;
  let last: ReadDay['last'] = null;
  const onExpired = (): void => {
    isExpired = true;
  };
  for await (const stored of throttled(store.readStream(stream, { onExpired }))) {
    const event = readEvent(signalEvents, stored);
    if (event === null) throw new TypeError(`${stored.type} in ${stream}`);
    last = { revision: stored.revision, position: stored.position };
    matches += event.data.clues.filter(isErased).length;
    await each(event, stored);
  }
  return { isExpired, matches, last };
}
