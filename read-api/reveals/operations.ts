import { z } from 'zod';
import type { ZodOpenApiOperationObject } from 'zod-openapi';
import {
  bodyCodes,
  emptyBody,
  jsonResponse,
  keyedCodes,
  refusalResponses,
} from '../../http/contract/responses.ts';
import { type RevealBody, revealBody } from './schemas.ts';

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
  request_id: '6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11',
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
const stored = { always: ['Cache-Control'] } as const;
const polled = { always: ['Cache-Control', 'Location', 'Retry-After'] } as const;

const receipts = {
  '200': jsonResponse('The receipt of a complete reveal.', revealBody, { empty }, stored),
  '202': jsonResponse(
    'The reveal is accepted and waits for its result: poll.',
    revealBody,
    { pending },
    polled,
  ),
};

/** POST /v1/sessions/{session_id}/reveal */
export const revealSessionOperation: ZodOpenApiOperationObject = {
  operationId: 'revealSession',
  tags: ['Reveals'],
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
    ...refusalResponses([
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
    ]),
  },
};

/** GET /v1/reveals/{reveal_id} */
export const getRevealOperation: ZodOpenApiOperationObject = {
  operationId: 'getReveal',
  tags: ['Reveals'],
  summary: 'Read a receipt',
  description: 'Completes a pending reveal whose result is there by now. Reading again never charges.',
  requestParams: { path: z.object({ reveal_id: z.uuid().meta({ description: 'The reveal.' }) }) },
  responses: {
    ...receipts,
    ...refusalResponses([
      'invalid_query',
      'reveal_not_found',
      'reveal_expired',
      ...keyedCodes,
      'tracking_unavailable',
      'reveal_unconfirmed',
    ]),
  },
};
