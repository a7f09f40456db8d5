import { readEvent } from '../../domain/kernel/events.ts';
import type { ProviderFailure } from '../../domain/lookup/answers.ts';
import { mayBeTruncated, type OpenRound } from '../../domain/lookup/enrichment.ts';
import { enrichmentEvents } from '../../domain/lookup/events.ts';
import type { SavedResult } from '../../domain/lookup/result.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import type { CommandContext } from '../handle.ts';
import { type EnrichmentStreams, handleEnrichment, type KnownEnrichment } from './enrichment-streams.ts';

interface AttemptOutcome {
  readonly ip: string;
  readonly roundNumber: number;
  readonly attempt: number;
  readonly outcome:
    | { readonly result: SavedResult }
    | { readonly failures: readonly ProviderFailure[]; readonly answered: readonly string[] };
  /** 0 to 1. */
  readonly jitter: number;
  /** Delay of the first retry, milliseconds. */
  readonly retryBaseMs: number;
}

/** Records the outcome of an attempt; ignored unless that attempt is due. `known`: the state just loaded. */
export const recordAttempt = async (
  streams: EnrichmentStreams,
  { ip, roundNumber, attempt, outcome, jitter, retryBaseMs }: AttemptOutcome,
  context: CommandContext,
  known?: KnownEnrichment,
): Promise<Position | null> => {
  const { position } = await handleEnrichment(
    streams,
    ip,
    'result' in outcome
      ? { type: 'Complete', round: roundNumber, attempt, result: outcome.result }
      : {
          type: 'Fail',
          round: roundNumber,
          attempt,
          failures: outcome.failures,
          answered: outcome.answered,
          at: context.at,
          jitter,
          baseMs: retryBaseMs,
        },
    context,
    known,
  );
  return position;
};

/**
 * Removes the events of an address before the restatement of its open round, or before the snapshot that its refresh began
 * with, so that an address that fails for months keeps a short stream. Does nothing unless all consumers have passed them: the
 * next restatement or snapshot covers more. `passed`: returns what all consumers have passed.
 * @throws StoreUnavailable
 */
export const truncateRestated = async (
  store: EventStore,
  stream: string,
  open: OpenRound,
  passed: () => Promise<Position | null>,
): Promise<void> => {
  if (!mayBeTruncated(open)) return;
  // The snapshot, the request, one event for each other reservation, and the failure.
  const limit = open.reservations.size + 3;
  for await (const stored of store.readStream(stream, { direction: 'backwards', limit })) {
    const event = readEvent(enrichmentEvents, stored);
    const isRestated = event?.type === 'lookup.EnrichmentRequested.v1' && event.data.restated === true;
    if (!isRestated && event?.type !== 'lookup.EnrichmentSnapshotted.v1') continue;
    const reached = await passed();
    if (reached !== null && stored.position <= reached) await store.truncateBefore(stream, stored.revision);
    return;
  }
};
