import { z } from 'zod';
import type { Tracker } from '../../domain/trackers/trackers.ts';
import {
  bodyCodes,
  emptyBody,
  keyedCodes,
  noContent,
  responseHeaders,
} from '../../http/contract/responses.ts';
import type { ApiRequest, Reply } from '../../http/contract/route.ts';
import { count, requestId, timestamp } from '../../http/contract/schemas/common.ts';
import { deletedResponse, jsonBody, operationsOf, REQUEST, storableJson } from '../operation.ts';
import { rangeQuery } from '../utc-range.ts';

const operation = operationsOf('Trackers');

/** The tag to install. The id is a UUID and the origin was checked at the start: nothing needs escaping. */
export const snippetOf = (publicUrl: string, trackerId: string): string =>
  `<script async src="${publicUrl}/tracking/a.js?tracker_id=${trackerId}" data-custom='{}'></script>`;

const name = z.string().meta({ description: '1 to 200 characters after trimming.', example: 'Main website' });
const origins = z.array(z.string()).meta({
  description:
    'Where the pixel may run: 1 to 50 serialised origins (`https://host[:port]`; `http://` for localhost and ' +
    'loopback addresses alone) or `https://*.host` for every subdomain.',
  example: ['https://www.example.com', 'https://*.example.com'],
});
const customerReference = z
  .string()
  .nullable()
  .meta({ description: 'A reference of your own, 1 to 200 characters.', example: 'customer-42' });

const trackerBody = z
  .object({
    id: z.uuid().meta({ description: 'Public; it is no key.' }),
    name,
    origins,
    customer_reference: customerReference,
    created_at: timestamp,
    disabled_at: timestamp.nullable(),
    snippet: z.string().meta({ description: 'The script tag to install.' }),
    request_id: requestId.optional(),
  })
  .meta({ id: 'Tracker', description: 'A pixel for one customer website.' });
export type TrackerBody = z.output<typeof trackerBody>;

const trackerCreate = z
  .strictObject({ name, origins, customer_reference: customerReference.optional() })
  .meta({ id: 'TrackerCreate' });

export const trackerUpdate = z
  .strictObject({
    name: name.optional(),
    origins: origins.optional(),
    customer_reference: customerReference.optional(),
  })
  .meta({ id: 'TrackerUpdate', description: 'What is left out stays as it is.' });

/** Disabled ones included, deleted ones left out. */
const trackerList = z
  .object({ trackers: z.array(trackerBody), request_id: requestId })
  .meta({ id: 'TrackerList' });

/** What is counted of a tracker (contract, Trackers 2). */
const trackerCounts = {
  capture_requests: count.meta({ description: 'Requests of the pixel, retries included.' }),
  sessions: count.meta({ description: 'New sessions.' }),
  api_requests: count.meta({
    description: 'Successful calls about the tracker, 202s and repeated reads included.',
  }),
  completed_responses: count.meta({ description: 'Those of them that were no 202.' }),
  company_responses: count.meta({ description: 'Those of them that returned a company.' }),
  reveals: count.meta({ description: 'Receipts, by the time they were made; not unique companies.' }),
  billable_reveals: count.meta({ description: 'Reveals with a unit, by the time they completed.' }),
};

const trackerUsageBody = z
  .object({
    tracker_id: z.uuid(),
    from: timestamp.meta({ description: 'Inclusive.' }),
    to: timestamp.meta({ description: 'Exclusive.' }),
    timezone: z.literal('UTC'),
    totals: z.object(trackerCounts),
    hourly: z
      .array(z.object({ hour: timestamp, ...trackerCounts }))
      .meta({ description: 'By hour; only hours in which anything was counted.' }),
    pending_reveals: count.meta({ description: 'As it stands now, whatever the range.' }),
    metrics_started_at: timestamp.meta({ description: 'When counting began.' }),
    partial_history: z
      .boolean()
      .meta({ description: '`from` is before `metrics_started_at`: zeros before it prove nothing.' }),
    accounting: z.string().meta({ description: 'What is counted, in words.' }),
    request_id: requestId.optional(),
  })
  .meta({ id: 'TrackerUsage', description: 'Usage of one tracker.' });
export type TrackerUsageBody = z.output<typeof trackerUsageBody>;

const ID = '3c0f8f3e-62a1-4d0e-9b1a-7f0c2d4e5a61';

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
const ofOne = [
  ...(['invalid_tracker', 'invalid_query', 'tracker_not_found', 'tracker_deleted'] as const),
  ...bodyCodes,
  ...keyedCodes,
];

/** GET /v1/trackers */
export const listTrackersOperation = operation('listTrackers', {
  summary: 'All trackers',
  description: 'Of the calling partner; disabled ones too, deleted ones not.',
  responses: {
    '200': storableJson('The trackers.', trackerList, { one: { trackers: [active], request_id: REQUEST } }),
  },
  codes: ['invalid_query', ...keyedCodes],
});

/** POST /v1/trackers */
export const createTrackerOperation = operation('createTracker', {
  summary: 'Create a tracker',
  description: 'One for each customer website. Install the returned `snippet` on its pages.',
  requestBody: jsonBody(trackerCreate),
  responses: {
    '201': storableJson('The tracker, with the snippet to install.', trackerBody, { active }),
  },
  codes: ['invalid_tracker', 'invalid_origin', 'invalid_query', ...bodyCodes, ...keyedCodes, 'tracker_limit'],
});

/** PATCH /v1/trackers/{tracker_id} */
export const updateTrackerOperation = operation('updateTracker', {
  summary: 'Change a tracker',
  addition: true,
  description:
    'Its name, origins or reference; the snippet stays. Visits are judged by the new origins within a second. What is shown ' +
    'of sessions and reveals from now on has the new reference; queued webhooks keep the old one.',
  requestParams: { path },
  requestBody: jsonBody(trackerUpdate),
  responses: { '200': storableJson('The tracker, changed.', trackerBody, { active }) },
  codes: [...ofOne, 'invalid_origin'],
});

/** DELETE /v1/trackers/{tracker_id} */
export const disableTrackerOperation = operation('disableTracker', {
  summary: 'Disable a tracker',
  description: 'Stops new collection and new reveals; receipts and usage are kept. Repeating it is safe.',
  requestParams: { path },
  responses: { '200': storableJson('The tracker, disabled.', trackerBody, { disabled }) },
  codes: ofOne,
});

/** POST /v1/trackers/{tracker_id}/enable */
export const enableTrackerOperation = operation('enableTracker', {
  summary: 'Enable a disabled tracker',
  description:
    'Same id, origins and snippet. Repeating it is safe. A deleted tracker cannot be enabled again.',
  requestParams: { path },
  requestBody: emptyBody,
  responses: { '200': storableJson('The tracker, active.', trackerBody, { active }) },
  codes: ofOne,
});

/** POST /v1/trackers/{tracker_id}/delete */
export const deleteTrackerOperation = operation('deleteTracker', {
  summary: 'Delete a tracker for ever',
  description:
    'Takes it off the lists and frees its slot. A repeat tells the original `deleted_at`. Not an erasure of personal data.',
  requestParams: { path },
  requestBody: emptyBody,
  responses: { '200': deletedResponse('TrackerDeleted', ID) },
  codes: ofOne,
});

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
export const trackerUsageOperation = operation('readTrackerUsage', {
  summary: 'Usage of a tracker',
  description: 'Today (UTC) by default, at most 31 days; of deleted trackers too. Reading it is not counted.',
  requestParams: { path, query: rangeQuery },
  responses: {
    '200': storableJson('What was counted in the range.', trackerUsageBody, { oneDay }),
  },
  codes: ['invalid_tracker', 'invalid_range', 'tracker_not_found', ...keyedCodes, 'tracking_unavailable'],
});

const pixelHeaders = z.object({
  'X-Request-ID': responseHeaders['X-Request-ID'],
  'Cache-Control': responseHeaders['Cache-Control'],
});

/** GET /tracking/a.js */
export const pixelOperation = operationsOf('Sessions')('getPixel', {
  summary: 'The pixel',
  description:
    "The script that a tracker's snippet loads: the same for every tracker, cacheable, with an `ETag`. Under the service's host and the tracker's active custom domains alone.",
  requestParams: { query: z.object({ tracker_id: z.uuid().meta({ description: 'The tracker.' }) }) },
  responses: {
    '200': {
      description: 'JavaScript.',
      headers: pixelHeaders,
      content: { 'text/javascript': { schema: z.string() } },
    },
    '304': noContent('Not changed since the `ETag` in `If-None-Match`.'),
  },
  codes: [
    'invalid_query',
    'invalid_tracker',
    'untrusted_collector',
    'tracker_not_found',
    'method_not_allowed',
    'tracker_deleted',
    'api_busy',
    'backend_unavailable',
    'backend_timeout',
    'service_unavailable',
  ],
});

/** A tracker as the API shows it. */
export const trackerFields = (tracker: Tracker, publicUrl: string): Omit<TrackerBody, 'request_id'> => ({
  id: tracker.tracker_id,
  name: tracker.name,
  origins: [...tracker.origins],
  customer_reference: tracker.customer_reference,
  created_at: tracker.created_at,
  disabled_at: tracker.disabled_at,
  snippet: snippetOf(publicUrl, tracker.tracker_id),
});

export const trackerAnswer = (
  request: ApiRequest,
  status: 200 | 201,
  tracker: Tracker,
  publicUrl: string,
): Reply => ({
  status,
  body: JSON.stringify({ ...trackerFields(tracker, publicUrl), request_id: request.id }),
});
