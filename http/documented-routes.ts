import {
  createDomainOperation,
  deleteDomainOperation,
  getDomainOperation,
  listDomainsOperation,
} from '../read-api/domains/operations.ts';
import { getLookupOperation, postLookupOperation } from '../read-api/lookup/operations.ts';
import { getRevealOperation, revealSessionOperation } from '../read-api/reveals/operations.ts';
import {
  captureVisitOperation,
  listSessionsOperation,
  previewSessionOperation,
} from '../read-api/sessions/operations.ts';
import {
  createTrackerOperation,
  deleteTrackerOperation,
  disableTrackerOperation,
  enableTrackerOperation,
  listTrackersOperation,
  trackerUsageOperation,
} from '../read-api/trackers/operations.ts';
import { pixelOperation } from '../read-api/trackers/pixel-operation.ts';
import { getUsageOperation } from '../read-api/usage/operations.ts';
import {
  getDeliveryOperation,
  listDeliveriesOperation,
  retryDeliveryOperation,
} from '../read-api/webhooks/delivery-operations.ts';
import {
  createWebhookOperation,
  deleteWebhookOperation,
  getWebhookOperation,
  listWebhooksOperation,
  rotateWebhookSecretOperation,
  updateWebhookOperation,
} from '../read-api/webhooks/operations.ts';
import { testWebhookOperation } from '../read-api/webhooks/test-operation.ts';
import { healthOperation } from './health-operation.ts';
import type { DocumentedRoute } from './openapi.ts';

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
  {
    method: 'GET',
    path: '/v1/trackers/:tracker_id/usage',
    access: 'key',
    operation: trackerUsageOperation,
  },
  {
    method: 'GET',
    path: '/v1/trackers/:tracker_id/domains',
    access: 'key',
    operation: listDomainsOperation,
  },
  {
    method: 'POST',
    path: '/v1/trackers/:tracker_id/domains',
    access: 'key',
    operation: createDomainOperation,
  },
  {
    method: 'GET',
    path: '/v1/trackers/:tracker_id/domains/:domain_id',
    access: 'key',
    operation: getDomainOperation,
  },
  {
    method: 'DELETE',
    path: '/v1/trackers/:tracker_id/domains/:domain_id',
    access: 'key',
    operation: deleteDomainOperation,
  },
  { method: 'GET', path: '/v1/sessions', access: 'key', operation: listSessionsOperation },
  { method: 'GET', path: '/v1/sessions/:session_id', access: 'key', operation: previewSessionOperation },
  {
    method: 'POST',
    path: '/v1/sessions/:session_id/reveal',
    access: 'key',
    operation: revealSessionOperation,
  },
  { method: 'GET', path: '/v1/reveals/:reveal_id', access: 'key', operation: getRevealOperation },
  {
    method: 'POST',
    path: '/v1/webhooks/:webhook_id/test',
    access: 'key',
    operation: testWebhookOperation,
  },
  { method: 'GET', path: '/tracking/a.js', access: 'public', operation: pixelOperation },
  { method: 'GET', path: '/v1/webhooks', access: 'key', operation: listWebhooksOperation },
  { method: 'POST', path: '/v1/webhooks', access: 'key', operation: createWebhookOperation },
  { method: 'GET', path: '/v1/webhooks/:webhook_id', access: 'key', operation: getWebhookOperation },
  { method: 'PATCH', path: '/v1/webhooks/:webhook_id', access: 'key', operation: updateWebhookOperation },
  { method: 'DELETE', path: '/v1/webhooks/:webhook_id', access: 'key', operation: deleteWebhookOperation },
  {
    method: 'POST',
    path: '/v1/webhooks/:webhook_id/rotate-secret',
    access: 'key',
    operation: rotateWebhookSecretOperation,
  },
  {
    method: 'GET',
    path: '/v1/webhooks/:webhook_id/deliveries',
    access: 'key',
    operation: listDeliveriesOperation,
  },
  {
    method: 'GET',
    path: '/v1/webhooks/:webhook_id/deliveries/:delivery_id',
    access: 'key',
    operation: getDeliveryOperation,
  },
  {
    method: 'POST',
    path: '/v1/webhooks/:webhook_id/deliveries/:delivery_id/retry',
    access: 'key',
    operation: retryDeliveryOperation,
  },
  { method: 'POST', path: '/tracking/collect', access: 'public', operation: captureVisitOperation },
  { method: 'GET', path: '/healthz', access: 'public', operation: healthOperation },
];
