import { enrichmentDecider } from '../../domain/lookup/enrichment.ts';
import { enrichmentEvents } from '../../domain/lookup/events.ts';
import { intakeStream, snapshotIntake } from '../../domain/lookup/intake.ts';
import {
  AppendTooLarge,
  type EventStore,
  type Position,
  WrongExpectedRevision,
} from '../../event-store/port.ts';
import { appendSafely, type CommandContext, toNewEvents } from '../handle.ts';
import { loadFromSnapshot } from '../snapshots.ts';
import { type EnrichmentStreams, intakeAggregate, loadEnrichment } from './enrichment-streams.ts';

export interface SnapshotLimits {
  /** Snapshot only results found before this instant (milliseconds), or by a fast clock. */
  readonly before: number;
  /** All consumers have passed this position; later events are not removed. */
  readonly passed: Position;
}

/**
 * Replaces the events of an address's ended enrichment by a snapshot. Idempotent, and completes a run that crashed between
 * append and truncation.
 * @returns false if the enrichment is still open or a consumer has not passed it; a later run retries
 * @throws OutcomeUnknown when the snapshot may be there, and the port's other errors when it is not
 */
export async function snapshotEnrichment(
  streams: EnrichmentStreams,
  ip: string,
  { before, passed }: SnapshotLimits,
  context: CommandContext,
): Promise<boolean> {
  const { store } = streams;
  const { stream, state, revision } = await loadEnrichment(streams, ip);
  if (revision === null) return false;
  if (state.snapshotted) {
    await store.truncateBefore(stream, revision);
    return true;
  }
  const decision = enrichmentDecider.decide({ type: 'Snapshot', before, at: context.at }, state);
  if (!decision.ok || decision.value.length === 0) return false;
  const [last] = await Array.fromAsync(store.readStream(stream, { from: revision, limit: 1 }));
  if (last === undefined || last.position > passed) return false;
  try {
    const events = toNewEvents(enrichmentEvents, decision.value, context);
    const appended = await appendSafely(store, stream, revision, events);
    await store.truncateBefore(stream, appended.revision);
    return true;
  } catch (error) {
    // A partner has just requested the address.
    if (error instanceof WrongExpectedRevision) return false;
    throw error;
  }
}

/**
 * Snapshots a partner's intake unless its last event is a snapshot, so that even a rarely used intake can be truncated. After a
 * conflict with a reservation, the next run retries.
 */
export async function snapshotIntakeOf(
  store: EventStore,
  partnerId: string,
  context: CommandContext,
): Promise<void> {
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
}
