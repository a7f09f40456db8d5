import type { Tracker } from '../../domain/trackers/trackers.ts';
import type { ApiRequest, Reply } from '../../http/contract/route.ts';
import { snippetOf } from '../snippet.ts';
import type { TrackerBody } from './schemas.ts';

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
