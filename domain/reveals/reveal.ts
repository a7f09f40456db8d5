import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { isoTime } from '../kernel/time.ts';
import type { CustomParameters } from '../sessions/events.ts';
import {
  REVEAL_PREFIX,
  type RevealEvent,
  type RevealFacts,
  type RevealResult,
  revealResultSchema,
} from './events.ts';

type Completed = Extract<RevealEvent, { type: 'reveals.RevealCompleted.v1' }>['data'];

export interface Reveal extends RevealFacts {
  /** null: pending. */
  readonly completed: Pick<Completed, 'completed_at' | 'billable' | 'result'> | null;
}

/** The reveal that a completion describes in full. */
export const revealOfCompletion = ({ completed_at, billable, result, ...facts }: Completed): Reveal => ({
  ...facts,
  completed: { completed_at, billable, result },
});

export type RevealCommand =
  | {
      readonly type: 'Request';
      readonly reveal: Omit<RevealFacts, 'created_at'>;
      /** null: there is none yet. */
      readonly result: RevealResult | null;
      readonly at: number;
    }
  | { readonly type: 'Complete'; readonly result: RevealResult; readonly at: number };

export type RevealRefusal = 'idempotency_conflict';

/** Returns whether any Company or Network field is known, which makes a reveal billable (contract, Reveals 3). */
export const isNonempty = ({ company, network }: Pick<RevealResult, 'company' | 'network'>): boolean =>
  [company ?? {}, network].some((fields) => Object.values(fields).some((value) => value !== null));

const completion = ({ completed: _, ...facts }: Reveal, result: RevealResult, at: number): RevealEvent => ({
  type: 'reveals.RevealCompleted.v1',
  data: { ...facts, completed_at: isoTime(at), billable: isNonempty(result), result },
});

/** The state is null before the request. */
export const revealDecider: Decider<Reveal | null, RevealCommand, RevealEvent, RevealRefusal> = {
  initial: null,

  decide(command, known) {
    switch (command.type) {
      case 'Request': {
        const { result, at } = command;
        if (known && known.session_id !== command.reveal.session_id) return refuse('idempotency_conflict');
        const requested = { ...command.reveal, created_at: isoTime(at) };
        const reveal = known ?? { ...requested, completed: null };
        const events: RevealEvent[] = known ? [] : [{ type: 'reveals.RevealRequested.v1', data: requested }];
        if (result && !reveal.completed) events.push(completion(reveal, result, at));
        return accept(events);
      }
      case 'Complete':
        return accept(known && !known.completed ? [completion(known, command.result, command.at)] : []);
      default:
        return unreachable(command);
    }
  },

  evolve(_known, { type, data }) {
    switch (type) {
      case 'reveals.RevealRequested.v1':
        return { ...data, completed: null };
      case 'reveals.RevealCompleted.v1':
        return revealOfCompletion(data);
      default:
        return unreachable(type);
    }
  },
};

export const revealStream = (revealId: string): string => `${REVEAL_PREFIX}${revealId}`;

/** The result for a visitor whose address is not public, so that no provider can know it (contract, Reveals 2). */
export const EMPTY_RESULT: RevealResult = {
  status: 'complete',
  match_type: 'unclassified',
  company_found: false,
  enriched_at: null,
  company: null,
  network: revealResultSchema.shape.network.parse({}),
  stale: false,
  fresh_until: null,
  refresh_status: 'not_needed',
  refresh_error: null,
};

/** What a partner sees of a reveal, in an answer and in a webhook. `custom`: the labels of its session. */
export const receiptOf = (
  { reveal_id, session_id, tracker_id, created_at, expires_at, completed }: Reveal,
  custom: CustomParameters,
) => ({
  reveal_id,
  session_id,
  tracker_id,
  custom,
  status: completed ? ('complete' as const) : ('pending' as const),
  billable: completed?.billable ?? false,
  billable_units: completed?.billable ? (1 as const) : (0 as const),
  created_at,
  completed_at: completed?.completed_at ?? null,
  expires_at,
  result: completed?.result ?? null,
  status_url: `/v1/reveals/${reveal_id}`,
});

export const receiptOfCompletion = (completed: Completed, custom: CustomParameters) =>
  receiptOf(revealOfCompletion(completed), custom);
