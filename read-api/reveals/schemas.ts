import { z } from 'zod';
import { type Reveal, receiptOf } from '../../domain/reveals/reveal.ts';
import type { CustomParameters } from '../../domain/sessions/events.ts';
import { bodyCodes, emptyBody, jsonResponse, keyedCodes } from '../../http/contract/responses.ts';
import type { PartnerRequest, Reply } from '../../http/contract/route.ts';
import { requestId, timestamp } from '../../http/contract/schemas/common.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { isUnknownOutcome } from '../../http/errors/failures.ts';
import { POLL_SECONDS, savedResultFields } from '../lookup/schemas.ts';
import { operationsOf, REQUEST, storableJson } from '../operation.ts';
import { customParameters } from '../sessions/schemas.ts';

const operation = operationsOf('Reveals');

const revealResult = z.object({ status: z.literal('complete'), ...savedResultFields }).meta({
  id: 'RevealResult',
  description: 'The saved result as it was when the reveal completed; it does not change after that.',
});

const revealBody = z
  .object({
    reveal_id: z.uuid(),
    session_id: z.uuid(),
    tracker_id: z.uuid(),
    custom: customParameters.optional(),
    status: z.enum(['pending', 'complete']),
    billable: z
      .boolean()
      .meta({ description: 'Whether it has one recorded unit; reading it never charges.' }),
    billable_units: z.union([z.literal(0), z.literal(1)]),
    created_at: timestamp,
    completed_at: timestamp.nullable(),
    expires_at: timestamp.meta({ description: "The session's own." }),
    result: revealResult.nullable(),
    status_url: z.string().meta({ description: 'Relative URL of the receipt.' }),
    request_id: requestId,
  })
  .meta({ id: 'Reveal', description: 'The receipt of a reveal.' });
export type RevealBody = z.output<typeof revealBody>;

/** The receipt that an event carries. */
export const completedReveal = revealBody
  .omit({ request_id: true })
  .extend({ status: z.literal('complete'), completed_at: timestamp, result: revealResult })
  .meta({ id: 'CompletedReveal', description: 'The receipt of a reveal that is complete.' });

const REVEAL = '5b8f2a0e-6a2b-5c1d-9f43-0d7c3c643f1e';
const pending: RevealBody = {
  reveal_id: REVEAL,
  session_id: '019cec49-6c1b-7d52-8a7e-3f0e0f6f2b11',
  tracker_id: '3c0f8f3e-62a1-4d0e-9b1a-7f0c2d4e5a61',
  custom: { campaign: 'spring', step: 2 },
  status: 'pending',
  billable: false,
  billable_units: 0,
  created_at: '2026-03-14T09:30:00.000Z',
  completed_at: null,
  expires_at: '2026-04-13T09:26:53.589Z',
  result: null,
  status_url: `/v1/reveals/${REVEAL}`,
  request_id: REQUEST,
};
const empty: RevealBody = {
  ...pending,
  status: 'complete',
  completed_at: '2026-03-14T09:30:00.000Z',
  result: {
    status: 'complete',
    match_type: 'unclassified',
    company_found: false,
    enriched_at: '2026-03-14T09:29:58.120Z',
    stale: false,
    fresh_until: '2026-03-21T09:29:58.120Z',
    refresh_status: 'not_needed',
    refresh_error: null,
    network: {
      connection_type: null,
      audience_type: null,
      audience_group: null,
      detail_level: null,
      is_isp: null,
    },
    company: null,
  },
};
const polled = { always: ['Cache-Control', 'Location', 'Retry-After'] } as const;

const receipts = {
  '200': storableJson('The receipt of a complete reveal.', revealBody, { empty }),
  '202': jsonResponse(
    'The reveal is accepted and waits for its result: poll.',
    revealBody,
    { pending },
    polled,
  ),
};

/** POST /v1/sessions/{session_id}/reveal */
export const revealSessionOperation = operation('revealSession', {
  summary: 'Reveal a session',
  description:
    'Each new reveal whose result holds any data uses one billable unit. Repeat with the same `Idempotency-Key` until ' +
    'there is an answer: that is the same reveal, and adds nothing. No body, or `{}`.',
  requestParams: {
    path: z.object({ session_id: z.uuid().meta({ description: 'The session.' }) }),
    header: z.object({
      'Idempotency-Key': z.uuidv4().meta({ description: 'New for each reveal, the same for its retries.' }),
    }),
  },
  requestBody: emptyBody,
  responses: {
    ...receipts,
  },
  codes: [
    'invalid_query',
    'invalid_idempotency_key',
    ...bodyCodes,
    'session_not_found',
    'idempotency_conflict',
    'tracker_disabled',
    'tracker_deleted',
    'session_expired',
    'reveal_expired',
    ...keyedCodes,
    'tracking_capacity',
    'tracking_unavailable',
    'reveal_unconfirmed',
  ],
});

/** GET /v1/reveals/{reveal_id} */
export const getRevealOperation = operation('getReveal', {
  summary: 'Read a receipt',
  description: 'Completes a pending reveal whose result is there by now. Reading again never charges.',
  requestParams: { path: z.object({ reveal_id: z.uuid().meta({ description: 'The reveal.' }) }) },
  responses: {
    ...receipts,
  },
  codes: [
    'invalid_query',
    'reveal_not_found',
    'reveal_expired',
    ...keyedCodes,
    'tracking_unavailable',
    'reveal_unconfirmed',
  ],
});

/** 200, or 202 while the reveal is pending (contract, Reveals 2). */
function receiptAnswer(request: PartnerRequest, reveal: Reveal, custom: CustomParameters): Reply {
  const receipt: RevealBody = { ...receiptOf(reveal, custom), request_id: request.id };
  const body = JSON.stringify(receipt);
  return reveal.completed
    ? { status: 200, body }
    : {
        status: 202,
        body,
        headers: { location: receipt.status_url, 'retry-after': String(POLL_SECONDS) },
      };
}

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
export async function countedReceipt(
  { customOf, countCall }: ReceiptDeps,
  request: PartnerRequest,
  reveal: Reveal,
): Promise<Reply> {
  const { partner_id } = request.caller;
  const custom = await customOf(partner_id, reveal.session_id);
  const company = reveal.completed?.result.company_found === true;
  await countCall(request, reveal.tracker_id, { completed: reveal.completed !== null, company });
  return receiptAnswer(request, reveal, custom);
}

/** Runs work that may create or complete a reveal. An unknown outcome is refused with `reveal_unconfirmed`. */
export async function refusingUnknownOutcome(
  request: PartnerRequest,
  work: () => Promise<Reply>,
): Promise<Reply> {
  try {
    return await work();
  } catch (error) {
    if (isUnknownOutcome(error)) return refusal(request, 'reveal_unconfirmed');
    throw error;
  }
}
