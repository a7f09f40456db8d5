import { type Enrichment, enrichmentStream } from '../../domain/lookup/enrichment.ts';
import type { SavedResult } from '../../domain/lookup/result.ts';
import type { Position } from '../../event-store/port.ts';
import { type CommandContext, handle, type Loaded } from '../handle.ts';
import { enrichmentAggregate, type LookupStreams } from './aggregates.ts';

export interface AttemptOutcome {
  readonly ip: string;
  readonly round: number;
  readonly attempt: number;
  readonly outcome:
    | { readonly result: SavedResult }
    | { readonly failures: readonly { provider: string; reason: string }[] };
  /** 0 to 1. */
  readonly jitter: number;
  /** The first retry's delay, milliseconds. */
  readonly retryBaseMs: number;
}

/** Writes down what an attempt came to; only the attempt that is due counts. `known`: as it was just before. */
export const recordAttempt = async (
  { store, digest }: LookupStreams,
  { ip, round, attempt, outcome, jitter, retryBaseMs }: AttemptOutcome,
  context: CommandContext,
  known?: Loaded<Enrichment>,
): Promise<Position | null> => {
  const handled = await handle(
    store,
    enrichmentAggregate,
    enrichmentStream(digest(ip)),
    'result' in outcome
      ? { type: 'Complete', round, attempt, result: outcome.result }
      : {
          type: 'Fail',
          round,
          attempt,
          failures: outcome.failures,
          at: context.at,
          jitter,
          baseMs: retryBaseMs,
        },
    context,
    known,
  );
  return handled.ok ? handled.value.position : null;
};
