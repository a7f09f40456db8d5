import { readEvent } from '../../domain/kernel/events.ts';
import { sessionEvents } from '../../domain/sessions/events.ts';
import { REMEMBERED, type Tab, tabDecider, tabStream } from '../../domain/sessions/tab.ts';
import type { EventStore, Revision } from '../../event-store/port.ts';

export interface KnownTab {
  readonly generation: number;
  readonly state: Tab;
  /** null: the stream does not exist, as far as is known. */
  readonly revision: Revision | null;
}

/**
 * Reads the end of a tab's stream. Its newest events may be hidden, because they expire with their sessions; the revision is
 * then that of the last hidden one. An event that caused a conflict but cannot be read is not replicated yet and may hold
 * the session of the visit; so the result stays behind it, and the next append conflicts again.
 * @param actual the revision that the conflict reported
 */
export const readTab = async (
  store: EventStore,
  tabId: string,
  generation: number,
  actual: Revision | null,
): Promise<KnownTab> => {
  const stream = tabStream(tabId, generation);
  const readBack = (limit: number, includeExpired: boolean) =>
    Array.fromAsync(store.readStream(stream, { direction: 'backwards', limit, includeExpired }));
  let back = await readBack(REMEMBERED, false);
  let revision = back[0]?.revision ?? -1;
  if (revision < (actual ?? -1)) {
    const [last] = await readBack(1, true);
    // Repeated, so that an event appended between the two reads is not missed.
    back = await readBack(REMEMBERED, false);
    revision = Math.max(back[0]?.revision ?? -1, last?.revision ?? -1);
  }
  const state = back.reduceRight((folded, stored) => {
    const event = readEvent(sessionEvents, stored);
    return event === null ? folded : tabDecider.evolve(folded, event);
  }, tabDecider.initial);
  return { generation, state, revision: revision < 0 ? null : revision };
};
