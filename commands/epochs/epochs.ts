import {
  type BeginEpoch,
  EPOCHS_STREAM,
  type Epoch,
  type EpochEvent,
  epochEvents,
  epochsDecider,
} from '../../domain/epochs/epochs.ts';
import type { Result } from '../../domain/kernel/decider.ts';
import type { EventStore } from '../../event-store/port.ts';
import { type Aggregate, type CommandContext, handle, load, newId } from '../handle.ts';

const aggregate: Aggregate<readonly Epoch[], BeginEpoch, EpochEvent, 'empty_log'> = {
  schemas: epochEvents,
  decider: epochsDecider,
};

/**
 * Begins an epoch at the log's head: a step of every restore, before any other write.
 * @returns the epoch; refused if the log is empty, because an epoch begins after an event
 * @throws what `handle` throws
 */
export async function beginEpoch(
  store: EventStore,
  context: CommandContext,
): Promise<Result<Epoch, 'empty_log'>> {
  const command = { type: 'Begin', epoch_id: newId(), head: await store.head() } as const;
  const handled = await handle(store, aggregate, EPOCHS_STREAM, command, context);
  return handled.ok ? { ok: true, value: handled.value.state.at(-1) as Epoch } : handled;
}

/** Creates a cache of the log's epochs, oldest first. `again` reads them afresh. Both throw StoreUnavailable. */
export function createKnownEpochs(store: EventStore) {
  let known: Promise<readonly Epoch[]> | null = null;
  const again = (): Promise<readonly Epoch[]> => {
    const reading = load(store, aggregate, EPOCHS_STREAM).then(({ state }) => state);
    known = reading;
    reading.catch(() => {
      if (known === reading) known = null;
    });
    return reading;
  };
  return { all: () => known ?? again(), again };
}
