import type { CustomParameters } from '../../domain/sessions/events.ts';
import { refusal } from '../../http/error-catalog.ts';
import { isUnknownOutcome } from '../../http/failures.ts';
import type { Answer, PartnerRequest } from '../../http/route.ts';
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
const receiptAnswer = (request: PartnerRequest, receipt: Receipt, custom: CustomParameters): Answer => {
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
const trackerCallOf = ({ completed }: Receipt): { completed: boolean; company: boolean } => ({
  completed: completed !== null,
  company: (completed?.result as { company_found?: boolean } | undefined)?.company_found === true,
});

export interface ReceiptDeps {
  /** Returns the labels of a session of the partner's. */
  readonly customOf: (partnerId: string, sessionId: string) => Promise<CustomParameters>;
  /** Counts a successful call that concerned one tracker, durably. */
  readonly countCall: (
    request: PartnerRequest,
    trackerId: string,
    call: { completed: boolean; company: boolean },
  ) => Promise<void>;
}

/** Counts the call, and answers with the receipt and its session's labels. */
export const countedReceipt = async (
  { customOf, countCall }: ReceiptDeps,
  request: PartnerRequest,
  receipt: Receipt,
): Promise<Answer> => {
  const { partner_id } = request.caller;
  const [custom] = await Promise.all([
    customOf(partner_id, receipt.session_id),
    countCall(request, receipt.tracker_id, trackerCallOf(receipt)),
  ]);
  return receiptAnswer(request, receipt, custom);
};

/** Runs work that may create or complete a reveal. An unknown outcome is refused with `reveal_unconfirmed`. */
export const refusingUnknownOutcome = async (
  request: PartnerRequest,
  work: () => Promise<Answer>,
): Promise<Answer> => {
  try {
    return await work();
  } catch (error) {
    if (isUnknownOutcome(error)) return refusal(request, 'reveal_unconfirmed');
    throw error;
  }
};
