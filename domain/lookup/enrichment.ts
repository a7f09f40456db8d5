import { List, Map as PersistentMap } from 'immutable';
import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { HOUR, isAhead, isoTime } from '../kernel/time.ts';
import type { ProviderFailure } from './answers.ts';
import type { EnrichmentEvent, Reservation, WorkKind } from './events.ts';
import { afterGivingUp, isIncomplete, isStale, type SavedResult, toUtcDays } from './result.ts';

/** A refresh gives up after this many attempts; a first enrichment never does (contract, Lookup 6). */
const REFRESH_ATTEMPTS = 5;

/**
 * Returns the milliseconds from failed attempt `attempt` (from 1) to the next: `baseMs` doubled per attempt to at most an
 * hour, ±20 %. `jitter` from 0 to 1.
 */
export const retryDelayMs = (attempt: number, jitter: number, baseMs: number): number =>
  Math.round(Math.min(baseMs * 2 ** (attempt - 1), HOUR) * (0.8 + 0.4 * jitter));

/** The open round of work. */
export interface OpenRound {
  readonly round: number;
  readonly kind: WorkKind;
  readonly requested_at: string;
  readonly attempts: number;
  readonly next_attempt_at: string;
  readonly reservations: List<Reservation>;
  /** Attempts that had failed before a reservation joined, by its id; 0 where absent. */
  readonly attempts_before: PersistentMap<string, number>;
  /** Providers that answered in earlier attempts that they know nothing. */
  readonly answered: readonly string[];
}

export interface Enrichment {
  readonly ip: string;
  readonly round: number;
  readonly open: OpenRound | null;
  readonly saved: SavedResult | null;
  /** Reservations of the last round, so that a late command can tell that its reservation was settled. */
  readonly settled: readonly Reservation[];
  /** Time at which the last round ended without a result; null: it ended with one. */
  readonly gave_up_at: string | null;
  readonly snapshotted: boolean;
  /** Whether the stream has ended and the next generation continues. */
  readonly forgotten: boolean;
}

/** The stream has ended, so the command belongs to the next generation. */
type EnrichmentRefusal = 'result_forgotten';

export type EnrichmentCommand =
  /** Requests the work, or joins the open round. `reservation` null: for a reveal. */
  | {
      readonly type: 'Submit';
      readonly ip: string;
      readonly reservation: Reservation | null;
      /** The providers that are asked now. */
      readonly configured: readonly string[];
      readonly at: number;
    }
  | {
      readonly type: 'Complete';
      readonly round: number;
      readonly attempt: number;
      readonly result: SavedResult;
    }
  | {
      readonly type: 'Fail';
      readonly round: number;
      readonly attempt: number;
      readonly failures: readonly ProviderFailure[];
      /** Providers that answered that they know nothing. */
      readonly answered: readonly string[];
      readonly at: number;
      /** 0 to 1: position of the delay within ±20 %. */
      readonly jitter: number;
      readonly baseMs: number;
    }
  /** Snapshots ended work whose result is from before `before`, or from a fast clock. Both in milliseconds. */
  | { readonly type: 'Snapshot'; readonly before: number; readonly at: number }
  /** Forgets a result that no partner has asked for in a long time, unless a round is open. */
  | { readonly type: 'Forget'; readonly at: number }
  /** Ends the open round without a result, and forgets the saved one: the address was erased. */
  | { readonly type: 'Erase'; readonly at: number };

/**
 * Returns the work that a POST may request in this state; null: the saved result is sufficient. `configured`: the providers
 * that are asked now.
 */
export function wantedWork(state: Enrichment, at: number, configured: readonly string[]): WorkKind | null {
  if (state.saved === null) return 'first';
  if (isStale(state.saved, at)) return 'refresh';
  return isIncomplete(state.saved, configured) ? 'completion' : null;
}

/** Whether a result is from before an instant, or from a fast clock. Both in milliseconds. */
const isFromBefore = ({ enriched_at }: SavedResult, before: number, at: number): boolean =>
  Date.parse(enriched_at) < before || isAhead(Date.parse(enriched_at), at);

function snapshot(
  { before, at }: Extract<EnrichmentCommand, { type: 'Snapshot' }>,
  state: Enrichment,
): EnrichmentEvent[] {
  const { open, saved, snapshotted } = state;
  if (open !== null || saved === null || snapshotted || !isFromBefore(saved, before, at)) return [];
  const { round, settled, gave_up_at } = state;
  const data = { round, result: toUtcDays(saved), settles: [...settled], gave_up_at };
  return [{ type: 'lookup.EnrichmentSnapshotted.v1', data }];
}

/** Requests a round of work, or joins the open one. */
function requestOrJoin(
  { ip, reservation, configured, at }: Extract<EnrichmentCommand, { type: 'Submit' }>,
  state: Enrichment,
): EnrichmentEvent[] {
  const { open } = state;
  const ended = state.settled.some((one) => one.reservation_id === reservation?.reservation_id);
  if (ended) return [];
  if (open) return reservation === null ? [] : join(ip, open, reservation);
  const kind = wantedWork(state, at, configured);
  if (kind === null) return [];
  const round = state.round + 1;
  const request = { ip, round, kind, requested_at: isoTime(at), reservation };
  return [{ type: 'lookup.EnrichmentRequested.v1', data: request }];
}

/** Adds a partner's reservation to the open round. */
const join = (
  ip: string,
  { round, attempts, reservations }: OpenRound,
  reservation: Reservation,
): EnrichmentEvent[] =>
  reservations.some(({ partner_id }) => partner_id === reservation.partner_id)
    ? []
    : [
        {
          type: 'lookup.EnrichmentJoined.v1',
          data: { ip, round, reservation, ...(attempts === 0 ? {} : { attempts }) },
        },
      ];

/**
 * Returns how many attempts have failed since a reservation was made: those before would tell a partner of another's pending
 * work.
 */
export const attemptsFor = ({ attempts, attempts_before }: OpenRound, reservationId: string): number =>
  attempts - attempts_before.get(reservationId, 0);

function fail(
  command: Extract<EnrichmentCommand, { type: 'Fail' }>,
  open: OpenRound,
  ip: string,
): EnrichmentEvent[] {
  const { round, attempt, at, jitter, baseMs } = command;
  const failures = [...command.failures];
  if (open.kind !== 'first' && attempt >= REFRESH_ATTEMPTS) {
    const gaveUp: EnrichmentEvent = {
      type: 'lookup.EnrichmentGaveUp.v1',
      data: {
        ip,
        round,
        attempt,
        kind: open.kind,
        gave_up_at: isoTime(at),
        failures,
        settles: [...open.reservations],
      },
    };
    return [gaveUp];
  }
  const next_attempt_at = isoTime(at + retryDelayMs(attempt, jitter, baseMs));
  const answered = command.answered.length > 0 ? { answered: [...command.answered] } : {};
  return [
    {
      type: 'lookup.EnrichmentAttemptFailed.v1',
      data: { ip, round, attempt, failed_at: isoTime(at), next_attempt_at, failures, ...answered },
    },
  ];
}

function erase({ ip, saved, open, forgotten }: Enrichment, at: number): EnrichmentEvent[] {
  if (forgotten || (saved === null && open === null)) return [];
  const erased_at = isoTime(at);
  const forgets: EnrichmentEvent = {
    type: 'lookup.ResultForgotten.v1',
    data: { ip, forgotten_at: erased_at },
  };
  if (open === null) return [forgets];
  const { round, attempts: attempt, kind, reservations } = open;
  const ends = { ip, round, attempt, kind, gave_up_at: erased_at, failures: [], settles: [...reservations] };
  return [{ type: 'lookup.EnrichmentGaveUp.v1', data: ends }, forgets];
}

/** Whether the outcome belongs to the due attempt; late outcomes of expired claims are ignored. */
const isDue = (open: OpenRound | null, round: number, attempt: number): open is OpenRound =>
  open !== null && open.round === round && open.attempts + 1 === attempt;

export const enrichmentDecider: Decider<Enrichment, EnrichmentCommand, EnrichmentEvent, EnrichmentRefusal> = {
  initial: {
    ip: '',
    round: 0,
    open: null,
    saved: null,
    settled: [],
    gave_up_at: null,
    snapshotted: false,
    forgotten: false,
  },

  decide(command, state) {
    if (state.forgotten && command.type !== 'Forget' && command.type !== 'Erase')
      return refuse('result_forgotten');
    switch (command.type) {
      case 'Submit':
        return accept(requestOrJoin(command, state));
      case 'Complete': {
        const { round, attempt, result } = command;
        if (!isDue(state.open, round, attempt)) return accept([]);
        const settles = [...state.open.reservations];
        return accept([{ type: 'lookup.EnrichmentCompleted.v1', data: { round, attempt, result, settles } }]);
      }
      case 'Fail':
        return accept(
          isDue(state.open, command.round, command.attempt) ? fail(command, state.open, state.ip) : [],
        );
      case 'Snapshot':
        return accept(snapshot(command, state));
      case 'Forget': {
        const { saved, open } = state;
        if (saved === null || open !== null) return accept([]);
        const data = { ip: saved.ip, forgotten_at: isoTime(command.at) };
        return accept([{ type: 'lookup.ResultForgotten.v1', data }]);
      }
      case 'Erase':
        return accept(erase(state, command.at));
      default:
        return unreachable(command);
    }
  },

  evolve(before, { type, data }) {
    const state = { ...before, snapshotted: false };
    switch (type) {
      case 'lookup.EnrichmentRequested.v1': {
        const { ip, round, kind, requested_at, reservation } = data;
        const reservations = reservation ? List.of(reservation) : List<Reservation>();
        const attempts_before = PersistentMap<string, number>();
        const begun = { attempts: 0, attempts_before, next_attempt_at: requested_at, answered: [] };
        const open = { round, kind, requested_at, reservations, ...begun };
        return { ...state, ip, round, open };
      }
      case 'lookup.EnrichmentJoined.v1': {
        if (!state.open) return state;
        const { reservation, attempts } = data;
        const reservations = state.open.reservations.push(reservation);
        const known = state.open.attempts_before;
        const attempts_before = attempts ? known.set(reservation.reservation_id, attempts) : known;
        return { ...state, open: { ...state.open, reservations, attempts_before } };
      }
      case 'lookup.EnrichmentAttemptFailed.v1': {
        if (!state.open) return state;
        const { attempt: attempts, next_attempt_at } = data;
        const answered = [...new Set([...state.open.answered, ...(data.answered ?? [])])];
        return { ...state, open: { ...state.open, attempts, next_attempt_at, answered } };
      }
      case 'lookup.EnrichmentCompleted.v1': {
        const { round, result: saved, settles: settled } = data;
        return { ...state, round, open: null, saved, settled, gave_up_at: null };
      }
      case 'lookup.EnrichmentGaveUp.v1': {
        // A completion that gave up counts as complete until the result is stale (contract, Lookup 8).
        const { round, kind, failures, settles: settled, gave_up_at } = data;
        const isCompletion = kind === 'completion';
        const saved =
          state.saved && isCompletion
            ? afterGivingUp(
                state.saved,
                failures.map(({ provider }) => provider),
              )
            : state.saved;
        return { ...state, round, open: null, saved, settled, gave_up_at };
      }
      case 'lookup.EnrichmentSnapshotted.v1': {
        const { round, result: saved, settles: settled, gave_up_at } = data;
        const known = { ip: saved.ip, round, saved, settled, gave_up_at };
        return { ...known, open: null, snapshotted: true, forgotten: false };
      }
      case 'lookup.ResultForgotten.v1':
        return { ...state, saved: null, forgotten: true };
      default:
        return unreachable(type);
    }
  },
};
