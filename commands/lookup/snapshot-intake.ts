import { intakeStream, snapshotIntake } from '../../domain/lookup/intake.ts';
import { AppendTooLarge, type EventStore, WrongExpectedRevision } from '../../event-store/port.ts';
import { type CommandContext, toNewEvents } from '../handle.ts';
import { loadFromSnapshot } from '../snapshots.ts';
import { intakeAggregate } from './aggregates.ts';

/**
 * Snapshots a partner's intake unless its last event is a snapshot, so that even a rarely used intake can be truncated. After a
 * conflict with a reservation, the next run retries.
 */
export const snapshotIntakeOf = async (
  store: EventStore,
  partnerId: string,
  context: CommandContext,
): Promise<void> => {
  const stream = intakeStream(partnerId);
  const [last] = await Array.fromAsync(store.readStream(stream, { direction: 'backwards', limit: 1 }));
  if (last === undefined || last.type === 'lookup.IntakeSnapshotted.v1') return;
  const { state, revision } = await loadFromSnapshot(store, intakeAggregate, stream);
  if (revision === null) return;
  try {
    await store.append(
      stream,
      revision,
      toNewEvents(intakeAggregate.schemas, [snapshotIntake(state)], context),
    );
  } catch (error) {
    if (!(error instanceof WrongExpectedRevision || error instanceof AppendTooLarge)) throw error;
  }
};
