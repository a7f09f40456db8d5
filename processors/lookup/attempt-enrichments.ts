import type pg from 'pg';
import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import {
  type EnrichmentStreams,
  type KnownEnrichment,
  loadEnrichment,
} from '../../commands/lookup/generations.ts';
import { recordAttempt } from '../../commands/lookup/record-attempt.ts';
import { truncateRestated } from '../../commands/lookup/truncate-restated.ts';
import { answeredIn, combineAnswers, completeResult } from '../../domain/lookup/answers.ts';
import { askersOf, type Enrichment, type OpenRound } from '../../domain/lookup/enrichment.ts';
import { isStale } from '../../domain/lookup/result.ts';
import type { Position } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock.ts';
import { inSpan } from '../../platform/spans.ts';
import { causesIn } from '../causes.ts';
import { type ClaimLoop, startClaimLoop } from '../claim-loop.ts';
import type { Claim } from '../claims.ts';
import { DUE_ENRICHMENTS } from './due-enrichments.ts';
import { askChain, type ChainNotes, type Provider } from './provider.ts';

export interface AttemptOptions extends EnrichmentStreams {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly log: Logger;
  readonly chain: readonly Provider[];
  /** Time limit of the whole provider chain, milliseconds. */
  readonly attemptMs: number;
  readonly retryBaseMs: number;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
  readonly onAttempt?: (outcome: 'completed' | 'failed') => void;
  readonly notes?: ProviderNotes;
  /** Returns the position that all consumers have passed; null: one has not begun. */
  readonly passed: () => Promise<Position | null>;
}

/** Records how providers do. */
export interface ProviderNotes extends ChainNotes {
  /** Called when the result's company is the provider's. */
  taken(provider: string): void;
}

/** Allows for the append after the attempt and for clock skew between workers. */
const LEASE_MARGIN_MS = 15_000;

/** A provider that takes so long may hang for the addresses of one partner, which would hold all slots. */
const LONG_MS = 500;

/** Makes the enrichment attempts that are due, at most `slots` at a time, and as many again three times that take long. */
export const startEnrichmentAttempts = (options: AttemptOptions, slots = 16): ClaimLoop => {
  const { pool, clock, log, attemptMs } = options;
  return startClaimLoop({
    pool,
    clock,
    due: DUE_ENRICHMENTS,
    leaseMs: attemptMs + LEASE_MARGIN_MS,
    slots,
    longMs: LONG_MS,
    attempt: (claim, stopping) => makeAttempt(options, claim, stopping),
    onFailed: (error, { cycle: round }) =>
      log.warn(
        { error: String(error), round },
        'enrichment attempt was not recorded; retried after its lease',
      ),
  });
};

const makeAttempt = async (options: AttemptOptions, claim: Claim, stopping: AbortSignal): Promise<void> => {
  const known = await loadEnrichment(options, claim.item);
  const causes = await causesIn(options.store, known.stream);
  await inSpan(
    () => ({ name: 'attempt enrichment', attributes: { 'doorplate.attempt': claim.attempt }, causes }),
    async (note) => {
      const outcome = await attemptOn(options, claim, known, stopping);
      if (outcome !== null) note({ 'doorplate.outcome': outcome });
    },
  );
  await shorten(options, known);
};

/** Cuts what the round's restatement repeats. A failure changes nothing: the next restatement covers more. */
const shorten = async ({ store, passed, log }: AttemptOptions, { stream, state }: KnownEnrichment) => {
  try {
    if (state.open !== null) await truncateRestated(store, stream, state.open, passed);
  } catch (error) {
    log.warn({ error: String(error) }, 'history of an enrichment was not cut; retried a day later');
  }
};

const attemptOn = async (
  options: AttemptOptions,
  { item: ip, cycle: round, attempt }: Claim,
  known: KnownEnrichment,
  stopping: AbortSignal,
): Promise<'completed' | 'failed' | null> => {
  const { random, retryBaseMs, attemptMs, onAttempt, notes } = options;
  const { state } = known;
  if (state.open?.round !== round || state.open.attempts + 1 !== attempt) return null;
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(attemptMs)]);
  const { combined, hasFailures, at } = await ask(options, ip, state, signal);
  // An attempt that the shutdown cut short has no result; it is due again after its lease.
  if (stopping.aborted && hasFailures) return null;
  const id = uuid();
  await recordAttempt(
    options,
    { ip, round, attempt, outcome: combined, jitter: random(), retryBaseMs },
    { correlationId: id, causationId: id, at },
    known,
  );
  if (combined.outcome === 'result' && combined.companyOf !== null) notes?.taken(combined.companyOf);
  const what = combined.outcome === 'result' ? 'completed' : 'failed';
  onAttempt?.(what);
  return what;
};

/** Reveals that a release before 0.3.0 asked for are one asker. */
const OF_REVEALS = ['reveals'];
const askersOfWork = (open: OpenRound | null): string[] => {
  const askers = open === null ? [] : askersOf(open);
  return askers.length > 0 ? askers : OF_REVEALS;
};

/** Asks the providers that the open round needs, and combines their answers. */
const ask = async (
  { clock, chain, notes }: AttemptOptions,
  ip: string,
  { open, saved }: Enrichment,
  signal: AbortSignal,
) => {
  const incomplete = open?.kind === 'completion' && saved && !isStale(saved, clock.now()) ? saved : null;
  const known = incomplete === null ? [] : answeredIn(incomplete);
  const answers = await askChain(
    chain.filter(({ name }) => !known.includes(name)),
    ip,
    signal,
    { answered: open?.answered ?? [], askers: askersOfWork(open), ...(notes && { notes }) },
  );
  const at = clock.now();
  return {
    at,
    hasFailures: answers.some((answer) => 'failure' in answer),
    combined:
      incomplete === null ? combineAnswers(ip, answers, saved, at) : completeResult(incomplete, answers, at),
  };
};
