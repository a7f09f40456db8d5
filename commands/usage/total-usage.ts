import { type UsageEvent, usageEvents } from '../../domain/usage/events.ts';
import { type UsageCommand, type UsageTotals, usageTotalsDecider } from '../../domain/usage/totals.ts';
import type { EventStore } from '../../event-store/port.ts';
import { throttled } from '../../platform/clock/waiting.ts';
import { conflictRetries } from '../conflicts.ts';
import {
  type Aggregate,
  appendSafely,
  type CommandContext,
  evolveStored,
  type Loaded,
  load,
  toNewEvents,
} from '../handle.ts';

const aggregate: Aggregate<UsageTotals, UsageCommand, UsageEvent, never> = {
  schemas: usageEvents,
  decider: usageTotalsDecider,
};

/**
 * Appends totals to a usage stream of a past day, part by part because together they may exceed an append, and truncates the
 * counts before them. Reads the stream once, since it may have millions of events. Idempotent, also after a crash.
 */
export const totalUsage = async (
  store: EventStore,
  stream: string,
  context: CommandContext,
): Promise<void> => {
  const afterConflict = conflictRetries();
  let known: Loaded<UsageTotals> = { state: usageTotalsDecider.initial, revision: null };
  for await (const stored of throttled(store.readStream(stream))) {
    known = evolveStored(aggregate, known, stored);
  }
  for (;;) {
    const decision = usageTotalsDecider.decide({ type: 'Total' }, known.state);
    if (!decision.ok || decision.value.length === 0) break;
    try {
      for (const part of decision.value) {
        const events = toNewEvents(usageEvents, [part], context);
        const { revision } = await appendSafely(store, stream, known.revision ?? 'no_stream', events);
        known = { state: usageTotalsDecider.evolve(known.state, part), revision };
      }
    } catch (error) {
      await afterConflict(error);
      known = await load(store, aggregate, stream, known);
    }
  }
  const { state, revision } = known;
  if (revision !== null) await store.truncateBefore(stream, revision - state.partsWritten + 1);
};
