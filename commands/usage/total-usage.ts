import { type UsageEvent, usageEvents } from '../../domain/usage/events.ts';
import { type UsageCommand, type UsageTotals, usageTotalsDecider } from '../../domain/usage/totals.ts';
import type { EventStore } from '../../event-store/port.ts';
import { type Aggregate, type CommandContext, handle, load } from '../handle.ts';

const aggregate: Aggregate<UsageTotals, UsageCommand, UsageEvent, never> = {
  schemas: usageEvents,
  decider: usageTotalsDecider,
};

/** Appends totals to a usage stream of a past day and truncates the counts before them. Idempotent, also after a crash. */
export const totalUsage = async (
  store: EventStore,
  stream: string,
  context: CommandContext,
): Promise<void> => {
  for (;;) {
    const handled = await handle(store, aggregate, stream, { type: 'Total' }, context);
    if (handled.ok && handled.value.events.length > 0) continue;
    const { state, revision } = await load(store, aggregate, stream);
    if (revision !== null) await store.truncateBefore(stream, revision - state.partsWritten + 1);
    return;
  }
};
