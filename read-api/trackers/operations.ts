import { z } from 'zod';
import type { ZodOpenApiOperationObject } from 'zod-openapi';
import {
  bodyCodes,
  emptyBody,
  jsonResponse,
  keyedCodes,
  refusalResponses,
} from '../../http/contract/responses.ts';
import { rangeQuery } from '../utc-range.ts';
import {
  type TrackerBody,
  type TrackerUsageBody,
  trackerBody,
  trackerCreate,
  trackerDeleted,
  trackerList,
  trackerUsageBody,
} from './schemas.ts';

const ID = '3c0f8f3e-62a1-4d0e-9b1a-7f0c2d4e5a61';
const REQUEST = '6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11';

const active: TrackerBody = {
  id: ID,
  name: 'Main website',
  origins: ['https://www.example.com'],
  customer_reference: null,
  created_at: '2026-03-14T09:26:53.589Z',
  disabled_at: null,
  snippet: `<script async src="https://doorplate.example/tracking/a.js?tracker_id=${ID}" data-custom='{}'></script>`,
  request_id: REQUEST,
};
const disabled: TrackerBody = { ...active, disabled_at: '2026-03-15T10:00:00.000Z' };

const path = z.object({ tracker_id: z.uuid().meta({ description: 'The tracker.' }) });
const stored = { always: ['Cache-Control'] } as const;
const ofOne = ['invalid_tracker', 'invalid_query', 'tracker_not_found', 'tracker_deleted'] as const;

/** GET /v1/trackers */
export const listTrackersOperation: ZodOpenApiOperationObject = {
  operationId: 'listTrackers',
  tags: ['Trackers'],
  summary: 'All trackers',
  description: 'Of the calling partner; disabled ones too, deleted ones not.',
  responses: {
    '200': jsonResponse(
      'The trackers.',
      trackerList,
      { one: { trackers: [active], request_id: REQUEST } },
      stored,
    ),
    ...refusalResponses(['invalid_query', ...keyedCodes]),
  },
};

/** POST /v1/trackers */
export const createTrackerOperation: ZodOpenApiOperationObject = {
  operationId: 'createTracker',
  tags: ['Trackers'],
  summary: 'Create a tracker',
  description: 'One for each customer website. Install the returned `snippet` on its pages.',
  requestBody: { required: true, content: { 'application/json': { schema: trackerCreate } } },
  responses: {
    '201': jsonResponse('The tracker, with the snippet to install.', trackerBody, { active }, stored),
    ...refusalResponses([
      'invalid_tracker',
      'invalid_origin',
      'invalid_query',
      ...bodyCodes,
      ...keyedCodes,
      'tracker_limit',
    ]),
  },
};

const oneTracker = (
  operationId: string,
  summary: string,
  description: string,
  success: ReturnType<typeof jsonResponse>,
): ZodOpenApiOperationObject => ({
  operationId,
  tags: ['Trackers'],
  summary,
  description,
  requestParams: { path },
  responses: {
    '200': success,
    ...refusalResponses([...new Set([...ofOne, ...bodyCodes, ...keyedCodes])]),
  },
});

/** DELETE /v1/trackers/{tracker_id} */
export const disableTrackerOperation = oneTracker(
  'disableTracker',
  'Disable a tracker',
  'Stops new collection and new reveals; receipts and usage are kept. Repeating it is safe.',
  jsonResponse('The tracker, disabled.', trackerBody, { disabled }, stored),
);

/** POST /v1/trackers/{tracker_id}/enable */
export const enableTrackerOperation: ZodOpenApiOperationObject = {
  ...oneTracker(
    'enableTracker',
    'Enable a disabled tracker',
    'Same id, origins and snippet. Repeating it is safe. A deleted tracker cannot be enabled again.',
    jsonResponse('The tracker, active.', trackerBody, { active }, stored),
  ),
  requestBody: emptyBody,
};

/** POST /v1/trackers/{tracker_id}/delete */
export const deleteTrackerOperation: ZodOpenApiOperationObject = {
  ...oneTracker(
    'deleteTracker',
    'Delete a tracker for ever',
    'Takes it off the lists and frees its slot. A repeat tells the original `deleted_at`. Not an erasure of personal data.',
    jsonResponse(
      'It is deleted.',
      trackerDeleted,
      { deleted: { id: ID, deleted: true, deleted_at: '2026-03-16T08:00:00.000Z', request_id: REQUEST } },
      stored,
    ),
  ),
  requestBody: emptyBody,
};

const counted = {
  capture_requests: 5,
  sessions: 2,
  api_requests: 3,
  completed_responses: 2,
  company_responses: 1,
  reveals: 1,
  billable_reveals: 1,
};
const oneDay: TrackerUsageBody = {
  tracker_id: ID,
  from: '2026-03-14T00:00:00.000Z',
  to: '2026-03-15T00:00:00.000Z',
  timezone: 'UTC',
  totals: counted,
  hourly: [{ hour: '2026-03-14T09:00:00.000Z', ...counted }],
  pending_reveals: 0,
  metrics_started_at: active.created_at,
  partial_history: true,
  accounting: 'Requests of the pixel and successful calls about the tracker.',
  request_id: REQUEST,
};

/** GET /v1/trackers/{tracker_id}/usage */
export const trackerUsageOperation: ZodOpenApiOperationObject = {
  operationId: 'readTrackerUsage',
  tags: ['Trackers'],
  summary: 'Usage of a tracker',
  description: 'Today (UTC) by default, at most 31 days; of deleted trackers too. Reading it is not counted.',
  requestParams: { path, query: rangeQuery },
  responses: {
    '200': jsonResponse('What was counted in the range.', trackerUsageBody, { oneDay }, stored),
    ...refusalResponses([
      'invalid_tracker',
      'invalid_range',
      'tracker_not_found',
      ...keyedCodes,
      'tracking_unavailable',
    ]),
  },
};
