import type { CustomParameters } from '../sessions/events.ts';
import type { RevealEvent } from './events.ts';
import { type Reveal, revealOfCompletion } from './reveal.ts';

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

type Completed = Extract<RevealEvent, { type: 'reveals.RevealCompleted.v1' }>['data'];

export const receiptOfCompletion = (completed: Completed, custom: CustomParameters) =>
  receiptOf(revealOfCompletion(completed), custom);
