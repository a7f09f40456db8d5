import 'zod-openapi';
import { z } from 'zod';
import { bodyCodes, keyedCodes, noContent } from '../../http/contract/responses.ts';
import { requestId, timestamp } from '../../http/contract/schemas/common.ts';
import { CURSOR, operationsOf, REQUEST, storableJson } from '../operation.ts';

const operation = operationsOf('Sessions');

export const customParameters = z
  .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
  .meta({
    id: 'CustomParameters',
    description:
      'Labels of the installer, which a visitor can alter. At most 32, at most 2,048 bytes as JSON. Names: a letter, then ' +
      'letters, digits, `_`, `.` or `-`, at most 64 characters; `constructor` and `prototype` are reserved. Values: a ' +
      'string of at most 512 characters, a number, a boolean or null.',
    example: { campaign: 'spring', step: 2 },
  });

const session = z.object({
  session_id: z.uuid(),
  tracker_id: z.uuid(),
  customer_reference: z.string().nullable().meta({ description: "The tracker's." }),
  custom: customParameters.optional(),
  visitor_country: z.string().nullable().meta({
    description:
      'ISO 3166-1 alpha-2, estimated from the address of the visitor; VPNs affect it. null: unknown. Not headquarters.',
    example: 'DE',
  }),
  first_seen_at: timestamp,
  last_seen_at: timestamp,
  expires_at: timestamp.meta({ description: '30 days after `first_seen_at`.' }),
});

/** A session as it stands in the feed. */
export type SessionBody = z.output<typeof session>;

export const sessionPreview = session.extend({ request_id: requestId.optional() }).meta({
  id: 'SessionPreview',
  description: 'Consecutive visits of one browser tab. Previewing it is free.',
});

export const sessionFeed = z
  .object({
    sessions: z.array(sessionPreview),
    next_cursor: z.string().meta({ description: 'Where to go on, now or later; there always is one.' }),
    has_more: z.boolean().meta({ description: 'Whether there is more already.' }),
    request_id: requestId,
  })
  .meta({ id: 'SessionFeed' });

/** What a pixel sends. */
export const captureBody = z
  .strictObject({
    tracker_id: z.uuid(),
    token: z.uuid().meta({ description: "The browser tab's, renewed after 30 minutes without a visit." }),
    visit_id: z.uuid().meta({ description: 'New for each page view; the same again is a retry.' }),
    custom: customParameters.optional(),
  })
  .meta({ id: 'Capture', description: 'One page view.' });

const example = {
  session_id: '019cec49-6c1b-7d52-8a7e-3f0e0f6f2b11',
  tracker_id: '3c0f8f3e-62a1-4d0e-9b1a-7f0c2d4e5a61',
  customer_reference: 'customer-42',
  custom: { campaign: 'spring', step: 2 },
  visitor_country: 'DE',
  first_seen_at: '2026-03-14T09:26:53.589Z',
  last_seen_at: '2026-03-14T09:31:07.112Z',
  expires_at: '2026-04-13T09:26:53.589Z',
};

/** GET /v1/sessions */
export const listSessionsOperation = operation('listSessions', {
  summary: 'The feed of sessions',
  description:
    'Of the calling partner, oldest first by creation. Go on with `next_cursor`: polling misses nothing and repeats ' +
    'nothing. Sessions that have expired are left out.',
  requestParams: {
    query: z.object({
      tracker_id: z.uuid().optional().meta({ description: 'Sessions of this tracker alone.' }),
      cursor: z.string().optional().meta({ description: '`next_cursor` of a page of the same filter.' }),
      limit: z.int().min(1).max(100).optional().meta({ description: 'Sessions on a page; 50 by default.' }),
    }),
  },
  responses: {
    '200': storableJson('A page, which may be empty.', sessionFeed, {
      one: { sessions: [example], next_cursor: CURSOR, has_more: false, request_id: REQUEST },
    }),
  },
  codes: ['invalid_query', 'invalid_tracker', 'invalid_cursor', 'tracker_not_found', ...keyedCodes],
});

/** GET /v1/sessions/{session_id} */
export const previewSessionOperation = operation('previewSession', {
  summary: 'Preview a session',
  description: 'What is known of a session without revealing it. Adds no billable unit.',
  requestParams: { path: z.object({ session_id: z.uuid().meta({ description: 'The session.' }) }) },
  responses: {
    '200': storableJson('The session.', sessionPreview, { one: { ...example, request_id: REQUEST } }),
  },
  codes: ['invalid_query', 'session_not_found', 'session_expired', ...keyedCodes],
});

/** POST /tracking/collect */
export const captureVisitOperation = operation('captureVisit', {
  summary: 'Record a visit',
  description:
    "What the pixel sends, from a browser on one of the tracker's origins (`Origin`); needs no key. JSON, also as " +
    '`text/plain`, which browsers send without a preflight.',
  requestBody: {
    required: true,
    content: { 'application/json': { schema: captureBody }, 'text/plain': { schema: captureBody } },
  },
  responses: {
    '204': noContent('The visit is recorded, or was before.'),
  },
  codes: [
    'invalid_capture',
    'invalid_custom_parameters',
    'invalid_query',
    ...bodyCodes.filter((code) => code !== 'invalid_body'),
    'untrusted_collector',
    'tracker_origin_denied',
    'tracker_not_found',
    'method_not_allowed',
    'tracker_deleted',
    'tracking_capacity',
    'tracking_unavailable',
    'api_busy',
    'backend_unavailable',
    'backend_timeout',
    'service_unavailable',
  ],
});
