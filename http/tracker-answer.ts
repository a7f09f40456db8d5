import type { Tracker } from '../domain/trackers/trackers.ts';
import type { Answer, ApiRequest } from './route.ts';
import type { TrackerBody } from './schemas/trackers.ts';

/** Bytes of a tracker, domain or webhook management body (contract, Requests 4). */
export const MANAGEMENT_BODY_LIMIT = 16_384;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A UUID in canonical form; null for anything else. */
export const asUuid = (value: unknown): string | null =>
  typeof value === 'string' && UUID.test(value) ? value.toLowerCase() : null;

/** The path's id in canonical form; null when it is no UUID. */
export const uuidParam = (request: ApiRequest, name: string): string | null => asUuid(request.params[name]);

/** The tag to install. The id is a UUID and the origin was checked at the start: nothing needs escaping. */
export const snippetOf = (publicUrl: string, trackerId: string): string =>
  `<script async src="${publicUrl}/tracking/a.js?tracker_id=${trackerId}" data-custom='{}'></script>`;

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
): Answer => ({
  status,
  body: JSON.stringify({ ...trackerFields(tracker, publicUrl), request_id: request.id }),
});
