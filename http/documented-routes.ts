import type { DocumentedRoute } from './openapi.ts';
import { healthOperation } from './operations/health.ts';
import { getLookupOperation, postLookupOperation } from './operations/lookup.ts';
import {
  createTrackerOperation,
  deleteTrackerOperation,
  disableTrackerOperation,
  enableTrackerOperation,
  listTrackersOperation,
} from './operations/trackers.ts';
import { getUsageOperation } from './operations/usage.ts';

/**
 * Every operation of the document with its place, so that the document can be printed without a database.
 * A test holds it equal to the routes that the server really has.
 */
export const documentedRoutes: readonly DocumentedRoute[] = [
  { method: 'POST', path: '/v1/lookup', access: 'key', operation: postLookupOperation },
  { method: 'GET', path: '/v1/lookup', access: 'key', operation: getLookupOperation },
  { method: 'GET', path: '/v1/usage', access: 'key', operation: getUsageOperation },
  { method: 'GET', path: '/v1/trackers', access: 'key', operation: listTrackersOperation },
  { method: 'POST', path: '/v1/trackers', access: 'key', operation: createTrackerOperation },
  { method: 'DELETE', path: '/v1/trackers/:tracker_id', access: 'key', operation: disableTrackerOperation },
  {
    method: 'POST',
    path: '/v1/trackers/:tracker_id/enable',
    access: 'key',
    operation: enableTrackerOperation,
  },
  {
    method: 'POST',
    path: '/v1/trackers/:tracker_id/delete',
    access: 'key',
    operation: deleteTrackerOperation,
  },
  { method: 'GET', path: '/healthz', access: 'public', operation: healthOperation },
];
