import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { type PublicAddress, parsePublicAddress } from '../../domain/kernel/address.ts';
import { HOUR } from '../../domain/kernel/time.ts';
import { isIncomplete, isStale, type SavedResult } from '../../domain/lookup/result.ts';
import type { ApiRequest, KeyRequest, KeyRoute, Reply } from '../../http/contract/route.ts';
import type { CluesOf } from '../../http/contract/schemas/company-signals.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { BackendTimeout } from '../../http/errors/failures.ts';
import { type LookupView, readLookup } from '../../queries/lookup/lookups.ts';
import { namedParameters } from '../query.ts';
import {
  type CountLookup,
  countBeforeSend,
  lookupFragment,
  lookupReply,
  NOT_NEEDED,
  pendingReply,
  REFRESH_PENDING,
  type Refresh,
} from './answer.ts';
import { getLookupOperation, POLL_SECONDS } from './schemas.ts';

/** The distinct addresses being looked up in this process (contract, Lookup 10: `lookup_capacity`). */
interface InFlight {
  /** Returns null where the ceiling is reached; otherwise what to call when the lookup has ended. */
  enter(ip: string): (() => void) | null;
}

/** Creates the count of addresses that are looked up. */
export function createInFlight(ceiling: number): InFlight {
  const running = new Map<string, number>();
  return {
    enter: (ip) => {
      const count = running.get(ip) ?? 0;
      if (count === 0 && running.size >= ceiling) return null;
      running.set(ip, count + 1);
      return () => {
        const left = (running.get(ip) ?? 1) - 1;
        if (left === 0) running.delete(ip);
        else running.set(ip, left);
      };
    },
  };
}

/**
 * Fresh results that need no more work: what no command can change until `fresh_until`, with nothing of a
 * partner's own in it (architecture, rule 12). By the caller's spelling, so that a hit parses nothing.
 */
interface AnswerCache {
  answer(request: ApiRequest, ip: string): Reply | null;
  /** To be called with each saved result that is shown. */
  keep(ip: string, saved: SavedResult, at: number): void;
  /** Forgets all answers: what is known of an address was erased. */
  clear(): void;
}

interface AnswerCacheDeps {
  /** Called for each answer that is given from memory. */
  readonly note: (ip: string) => void;
  /** Returns the names of the providers that are asked now: the same array while they do not change. */
  readonly configured: () => readonly string[];
  /** Whether `clear` is called after each erasure; otherwise nothing is answered from memory. */
  readonly hearsOfErasures: () => boolean;
}

/** A result that was read before an erasure may be shown for so long after it, and is not kept. Longer than a query takes. */
const READ_BEFORE_MS = 5_000;
const CACHED = 10_000;
/** A caller may ask for one large result in thousands of spellings, each of which is an entry. */
const CACHED_CHARACTERS = 64 * 1_048_576;
/** The times of a saved result are cut to days one day; an answer kept for longer would still show them in full. */
const CACHED_MS = HOUR;

export function createAnswerCache({ note, configured, hearsOfErasures }: AnswerCacheDeps): AnswerCache {
  let providers = configured();
  let keepsFrom = Number.NEGATIVE_INFINITY;
  const entries = new LRUCache<
    string,
    { address: string; fragment: string; until: number; matchType: SavedResult['match_type'] }
  >({ max: CACHED, maxSize: CACHED_CHARACTERS, sizeCalculation: ({ fragment }) => fragment.length });
  /** Another provider makes results incomplete that were complete. */
  const forgetIfChanged = (): void => {
    const now = configured();
    if (now === providers) return;
    providers = now;
    entries.clear();
  };
  return {
    answer: (request, ip) => {
      forgetIfChanged();
      const entry = entries.get(ip);
      if (!entry || entry.until <= request.receivedAt || !hearsOfErasures()) return null;
      note(entry.address);
      return lookupReply(request, ip, entry.fragment, entry.matchType, NOT_NEEDED);
    },
    keep: (ip, saved, at) => {
      note(saved.ip);
      if (isIncomplete(saved, configured()) || isStale(saved, at)) return;
      if (performance.now() < keepsFrom || !hearsOfErasures()) return;
      entries.set(ip, {
        address: saved.ip,
        fragment: lookupFragment(saved, NOT_NEEDED, at),
        until: Math.min(Date.parse(saved.fresh_until), at + CACHED_MS),
        matchType: saved.match_type,
      });
    },
    clear: () => {
      entries.clear();
      keepsFrom = performance.now() + READ_BEFORE_MS;
    },
  };
}

interface GetLookupDeps {
  readonly pool: pg.Pool;
  readonly count: CountLookup;
  readonly cluesOf: CluesOf;
  readonly answerCache: AnswerCache;
  readonly inFlight: InFlight;
  /** Returns the names of the providers that are asked now: the same array while they do not change. */
  readonly configured: () => readonly string[];
  /** Waits until the read models have all that the store has now; false after the time limit. */
  readonly waitForHead: () => Promise<boolean>;
  /** The same for a poll of what is known already; it does not wake the projections. */
  readonly waitForHeadPassively: (withinMs: number) => Promise<boolean>;
}

/** The longest wait for the read models while work is unfinished, in milliseconds. */
const UNFINISHED_MS = 4_000;
/** The longest wait for them where a saved result can serve, in milliseconds. */
const SAVED_MS = 1_000;

/** GET /v1/lookup: reads a saved result or polls a submission. Never starts work. */
export const getLookupRoute = (deps: GetLookupDeps): KeyRoute => ({
  method: 'GET',
  path: '/v1/lookup',
  access: 'key',
  body: 'none',
  bodyLimit: 1_024,
  targetLimit: 512,
  operation: getLookupOperation,
  beforeSend: countBeforeSend(deps.count, deps.cluesOf),
  handle: (request) => {
    const text = ipOf(request.query);
    if (text === null) return refusal(request, 'invalid_query');
    const cached = deps.answerCache.answer(request, text);
    if (cached) return cached;
    const ip = parsePublicAddress(text);
    if (ip === null) return refusal(request, 'invalid_ip');
    const leave = deps.inFlight.enter(ip);
    if (leave === null) return refusal(request, 'lookup_capacity');
    return read(deps, request, text, ip).finally(leave);
  },
});

/** The only parameter's value; null unless there is exactly one `ip` and nothing else. */
function ipOf(query: string): string | null {
  if (query.startsWith('ip=') && !/[&%+]/.test(query)) return query.slice(3);
  return namedParameters(query, ['ip'])?.ip ?? null;
}

async function read(
  deps: GetLookupDeps,
  request: KeyRequest,
  text: string,
  ip: PublicAddress,
): Promise<Reply> {
  const { partner_id } = request.caller;
  const readNow = () => readLookup(deps.pool, ip, partner_id, request.receivedAt);
  let view = await readNow();
  const configured = deps.configured();
  if (!isSettled(view, request.receivedAt, configured)) {
    await catchUp(deps, view);
    view = await readNow();
  }
  if (view.saved) {
    deps.answerCache.keep(text, view.saved, request.receivedAt);
    const refresh = refreshSeenBy(view, view.saved, request.receivedAt, configured);
    const fragment = lookupFragment(view.saved, refresh, request.receivedAt);
    return lookupReply(request, text, fragment, view.saved.match_type, refresh);
  }
  return withoutSaved(request, text, ip, view);
}

/** Nothing that the log may hold by now changes it before it goes stale. */
const isSettled = ({ saved }: LookupView, at: number, configured: readonly string[]): boolean =>
  saved !== null && !isIncomplete(saved, configured) && !isStale(saved, at);

/**
 * Waits for the store's head where the caller may know more than the read models, from a POST that was answered by any
 * process: of a submission that they lack, or of the end of work that they show as unfinished.
 * @throws BackendTimeout if a miss or unfinished work cannot be confirmed in time
 */
async function catchUp(
  { waitForHead, waitForHeadPassively }: GetLookupDeps,
  { saved, reservation }: LookupView,
): Promise<void> {
  // A saved result serves, stale or not, also while the store is away.
  if (saved) await waitForHeadPassively(SAVED_MS).catch(() => false);
  else {
    const isMiss = !reservation || reservation.state === 'reserved';
    const isThere = await (isMiss ? waitForHead() : waitForHeadPassively(UNFINISHED_MS));
    if (!isThere) throw new BackendTimeout('the read models are behind');
  }
}

function withoutSaved(
  request: KeyRequest,
  text: string,
  lookupIp: string,
  { reservation, work }: LookupView,
): Reply {
  if (!reservation || reservation.state === 'gave_up') return refusal(request, 'not_requested');
  switch (reservation.state) {
    case 'reserved':
      return refusal(request, 'submission_unconfirmed', { retryAfter: POLL_SECONDS });
    case 'submitted':
      if (!work) return refusal(request, 'lookup_reconciliation_required', { retryAfter: POLL_SECONDS });
      return pendingReply(request, text, {
        lookupIp,
        submittedAt: reservation.madeAt,
        attempts: work.attempts,
        nextAttemptAt: work.nextAttemptAt,
        enqueued: false,
      });
    case 'completed':
    case 'settled':
      return refusal(request, 'lookup_reconciliation_required', { retryAfter: POLL_SECONDS });
  }
}

/** Returns the refresh that a GET shows (contract, Lookup). A GET starts none and has no refused admission. */
function refreshSeenBy(
  { reservation, work }: LookupView,
  saved: SavedResult,
  at: number,
  configured: readonly string[],
): Refresh {
  if (!isIncomplete(saved, configured) && !isStale(saved, at)) return NOT_NEEDED;
  if (work) return REFRESH_PENDING;
  const unconfirmed = reservation?.state === 'reserved';
  if (unconfirmed)
    return { status: 'deferred', error: 'submission_unconfirmed', retryAfterSeconds: POLL_SECONDS };
  const gaveUp =
    reservation?.state === 'gave_up' &&
    reservation.kind !== 'completion' &&
    (reservation.endedAt ?? '') > saved.enriched_at;
  if (gaveUp) return { status: 'deferred', error: 'lookup_failed', retryAfterSeconds: POLL_SECONDS };
  return { status: 'not_requested', error: null };
}
