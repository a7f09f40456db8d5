import type { ProviderFailure } from '../../domain/lookup/answers.ts';
import type { SavedResult } from '../../domain/lookup/result.ts';
import type { Position } from '../../event-store/port.ts';
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
export async function recordAttempt(
  streams: EnrichmentStreams,
  { ip, roundNumber, attempt, outcome, jitter, retryBaseMs }: AttemptOutcome,
  context: CommandContext,
  known?: KnownEnrichment,
): Promise<Position | null> {
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
}
