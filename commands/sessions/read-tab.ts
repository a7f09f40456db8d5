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
 * Reads the end of a tab's stream. It reads hidden events too and leaves out those of expired sessions: skipping the hidden
 * visits of one session could mean reading millions. An event that caused a conflict but cannot be read is not replicated yet
 * and may hold the session of the visit; so the result stays behind it, and the next append conflicts again.
 * @param at milliseconds
 */
export const readTab = async (
  store: EventStore,
  tabId: string,
  generation: number,
  at: number,
): Promise<KnownTab> => {
  const read = { direction: 'backwards', limit: REMEMBERED, includeExpired: true } as const;
  const back = await Array.fromAsync(store.readStream(tabStream(tabId, generation), read));
  const state = back.reduceRight((folded, stored) => {
    const event = readEvent(sessionEvents, stored);
    const isLive = event !== null && Date.parse(event.data.expires_at) > at;
    return isLive ? tabDecider.evolve(folded, event) : folded;
  }, tabDecider.initial);
  return { generation, state, revision: back[0]?.revision ?? null };
};
