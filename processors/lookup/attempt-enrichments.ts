import type { Logger } from 'pino';
import { ownContext } from '../../commands/handle.ts';
import {
  type EnrichmentStreams,
  type KnownEnrichment,
  loadEnrichment,
} from '../../commands/lookup/enrichment-streams.ts';
import { recordAttempt } from '../../commands/lookup/record-attempt.ts';
import { answeredIn, combineAnswers, completeResult } from '../../domain/lookup/answers.ts';
import type { Enrichment } from '../../domain/lookup/enrichment.ts';
import { isStale } from '../../domain/lookup/result.ts';
import { inSpan } from '../../platform/telemetry/spans.ts';
import { causesIn } from '../causes.ts';
import { type Claim, type ClaimLoop, type DueAttempts, startClaimLoop } from '../claims.ts';
import type { ProcessorDeps } from '../deps.ts';
import { askChain, type ChainNotes, type Provider } from './providers/provider.ts';

export interface AttemptOptions extends EnrichmentStreams, ProcessorDeps {
  readonly log: Logger;
  readonly chain: readonly Provider[];
  /** Time limit of the whole provider chain, milliseconds. */
  readonly attemptMs: number;
  readonly retryBaseMs: number;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
  readonly onAttempt?: (outcome: 'completed' | 'failed') => void;
  readonly notes?: ProviderNotes;
}

/** Records how providers do. */
export interface ProviderNotes extends ChainNotes {
  /** Called when the result's company is the provider's. */
  taken(provider: string): void;
}

/** Allows for the append after the attempt and for clock skew between workers. */
const LEASE_MARGIN_MS = 15_000;

/** Attempts at a time in a process, and of one partner: a shared enrichment counts for the first that requested it. */
const MAX_CONCURRENT_ATTEMPTS = 64;
const MAX_CONCURRENT_ATTEMPTS_OF_PARTNER = 32;

const DUE: DueAttempts = {
  name: 'claim_due_enrichments',
  table: 'read.enrichment_work',
  key: 'ip',
  cycle: 'w.round',
  attempt: 'w.attempts + 1',
  dueAt: 'w.next_attempt_at',
  recordedAt: 'coalesce(w.last_attempt_at, w.requested_at)',
  partner: 'w.asked_by',
  mark: 'enrichment',
};

/** Makes the enrichment attempts that are due. */
export function startEnrichmentAttempts(options: AttemptOptions, slots = MAX_CONCURRENT_ATTEMPTS): ClaimLoop {
  const { pool, clock, log, chain, attemptMs } = options;
  return startClaimLoop({
    pool,
    clock,
    due: DUE,
    leaseMs: attemptMs + LEASE_MARGIN_MS,
    slots,
    perPartner: MAX_CONCURRENT_ATTEMPTS_OF_PARTNER,
    heldBack: () => chain.flatMap(({ name, isHeldBack }) => (isHeldBack?.() ? [name] : [])),
    probed: () => chain.find(({ hasProbe }) => hasProbe?.())?.name ?? null,
    attempt: (claim, stopping) => makeAttempt(options, claim, stopping),
    onFailed: (error, { cycle: roundNumber }) =>
      log.warn(
        { error: String(error), round: roundNumber },
        'enrichment attempt was not recorded; retried after its lease',
      ),
  });
}

/** @returns the provider that held the attempt back; null: none did */
async function makeAttempt(
  options: AttemptOptions,
  claim: Claim,
  stopping: AbortSignal,
): Promise<string | null> {
  const known = await loadEnrichment(options, claim.item);
  const causes = await causesIn(options.store, known.stream);
  const outcome = await inSpan(
    () => ({ name: 'attempt enrichment', attributes: { 'doorplate.attempt': claim.attempt }, causes }),
    async (note) => {
      const made = await attemptOn(options, claim, known, stopping);
      if (made !== null) note({ 'doorplate.outcome': typeof made === 'string' ? made : 'held_back' });
      return made;
    },
  );
  return outcome !== null && typeof outcome !== 'string' ? outcome.heldBackBy : null;
}

async function attemptOn(
  options: AttemptOptions,
  { item: ip, cycle: roundNumber, attempt, probe }: Claim,
  known: KnownEnrichment,
  stopping: AbortSignal,
): Promise<'completed' | 'failed' | { readonly heldBackBy: string } | null> {
  const { random, retryBaseMs, attemptMs, onAttempt, notes } = options;
  const { state } = known;
  if (state.open?.round !== roundNumber || state.open.attempts + 1 !== attempt) return null;
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(attemptMs)]);
  // An address that has failed waits for its turn behind those that have not.
  const mayProbe = attempt === 1 || probe;
  const { combined, hasFailures, at } = await ask(options, ip, state, mayProbe, signal);
  // An attempt that the shutdown cut short has no result; it is due again after its lease.
  if (stopping.aborted && hasFailures) return null;
  if (combined.outcome === 'held_back') return { heldBackBy: combined.by };
  await recordAttempt(
    options,
    { ip, roundNumber, attempt, outcome: combined, jitter: random(), retryBaseMs },
    { ...ownContext(options.clock), at },
    known,
  );
  if (combined.outcome === 'result' && combined.companyOf !== null) notes?.taken(combined.companyOf);
  const what = combined.outcome === 'result' ? 'completed' : 'failed';
  onAttempt?.(what);
  return what;
}

/** Asks the providers that the open round needs, and combines their answers. */
async function ask(
  { clock, chain, notes }: AttemptOptions,
  ip: string,
  { open, saved }: Enrichment,
  mayProbe: boolean,
  signal: AbortSignal,
) {
  const incomplete = open?.kind === 'completion' && saved && !isStale(saved, clock.now()) ? saved : null;
  const known = incomplete === null ? [] : answeredIn(incomplete);
  const answers = await askChain(
    chain.filter(({ name }) => !known.includes(name)),
    ip,
    signal,
    { answered: open?.answered ?? [], mayProbe, ...(notes && { notes }) },
  );
  const at = clock.now();
  return {
    at,
    hasFailures: answers.some((answer) => !('record' in answer)),
    combined:
      incomplete === null ? combineAnswers(ip, answers, saved, at) : completeResult(incomplete, answers, at),
  };
}
