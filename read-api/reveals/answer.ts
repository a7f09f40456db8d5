import type { CustomParameters } from '../../domain/sessions/events.ts';
import { refusal } from '../../http/error-catalog.ts';
import { isUnknownOutcome } from '../../http/failures.ts';
import type { Answer, ApiRequest } from '../../http/route.ts';
import { POLL_SECONDS } from '../polling.ts';

/** A receipt, from the stream that it stands on or from the read model. */
export interface Receipt {
  readonly reveal_id: string;
  readonly session_id: string;
  readonly tracker_id: string;
  readonly created_at: string;
  readonly expires_at: string;
  /** null: pending. */
  readonly completed: null | {
    readonly completed_at: string;
    readonly billable: boolean;
    readonly result: object;
  };
}

/** 200, or 202 while the reveal is pending (contract, Reveals 2). */
export const receiptAnswer = (request: ApiRequest, receipt: Receipt, custom: CustomParameters): Answer => {
  const { reveal_id, session_id, tracker_id, created_at, expires_at, completed } = receipt;
  const status_url = `/v1/reveals/${reveal_id}`;
  const body = JSON.stringify({
    reveal_id,
    session_id,
    tracker_id,
    custom,
    status: completed ? 'complete' : 'pending',
    billable: completed?.billable ?? false,
    billable_units: completed?.billable ? 1 : 0,
    created_at,
    completed_at: completed?.completed_at ?? null,
    expires_at,
    result: completed?.result ?? null,
    status_url,
    request_id: request.id,
  });
  return completed
    ? { status: 200, body }
    : { status: 202, body, headers: { location: status_url, 'retry-after': String(POLL_SECONDS) } };
};

/** What a successful call about a reveal counts as in its tracker's usage. */
export const trackerCallOf = ({ completed }: Receipt): { completed: boolean; company: boolean } => ({
  completed: completed !== null,
  company: (completed?.result as { company_found?: boolean } | undefined)?.company_found === true,
});

/** Runs work that may create or complete a reveal. An unknown outcome is refused with `reveal_unconfirmed`. */
export const refusingUnknownOutcome = async (
  request: ApiRequest,
  work: () => Promise<Answer>,
): Promise<Answer> => {
  try {
    return await work();
  } catch (error) {
    if (isUnknownOutcome(error)) return refusal(request, 'reveal_unconfirmed');
    throw error;
  }
};
