import { receiptOf } from '../../domain/reveals/receipt.ts';
import type { Reveal } from '../../domain/reveals/reveal.ts';
import type { CustomParameters } from '../../domain/sessions/events.ts';
import type { PartnerRequest, Reply } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { isUnknownOutcome } from '../../http/errors/failures.ts';
import { POLL_SECONDS } from '../polling.ts';
import type { RevealBody } from './schemas.ts';

/** 200, or 202 while the reveal is pending (contract, Reveals 2). */
const receiptAnswer = (request: PartnerRequest, reveal: Reveal, custom: CustomParameters): Reply => {
  const receipt: RevealBody = { ...receiptOf(reveal, custom), request_id: request.id };
  const body = JSON.stringify(receipt);
  return reveal.completed
    ? { status: 200, body }
    : {
        status: 202,
        body,
        headers: { location: receipt.status_url, 'retry-after': String(POLL_SECONDS) },
      };
};

/** What a successful call about a reveal counts as in its tracker's usage. */
const trackerCallOf = ({ completed }: Reveal): { completed: boolean; company: boolean } => ({
  completed: completed !== null,
  company: completed?.result.company_found === true,
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

/** Counts the call, and answers with the receipt and its session's labels. A call that is refused for want of them is not counted. */
export const countedReceipt = async (
  { customOf, countCall }: ReceiptDeps,
  request: PartnerRequest,
  reveal: Reveal,
): Promise<Reply> => {
  const { partner_id } = request.caller;
  const custom = await customOf(partner_id, reveal.session_id);
  await countCall(request, reveal.tracker_id, trackerCallOf(reveal));
  return receiptAnswer(request, reveal, custom);
};

/** Runs work that may create or complete a reveal. An unknown outcome is refused with `reveal_unconfirmed`. */
export const refusingUnknownOutcome = async (
  request: PartnerRequest,
  work: () => Promise<Reply>,
): Promise<Reply> => {
  try {
    return await work();
  } catch (error) {
    if (isUnknownOutcome(error)) return refusal(request, 'reveal_unconfirmed');
    throw error;
  }
};
