import { type UsageEvent, usageEvents } from '../../domain/usage/events.ts';
import { type UsageCommand, type UsageTotals, usageTotals } from '../../domain/usage/totals.ts';
import type { EventStore } from '../../event-store/port.ts';
import { type Aggregate, type CommandContext, handle, load } from '../handle.ts';

const aggregate: Aggregate<UsageTotals, UsageCommand, UsageEvent, never> = {
  schemas: usageEvents,
  decider: usageTotals,
};

/**
 * Writes totals at the end of a usage stream whose day is over, and drops the counts before them. Taken up where
 * an earlier run was killed; repeating it changes nothing.
 */
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
