/**
 * Every code that an error answer can carry, with its status and what a caller does about it (contract,
 * Errors), and the one function that makes such an answer.
 */
import type { Reply } from '../contract/route.ts';

/** One line of a catalog, as the OpenAPI document publishes it. */
export interface CatalogEntry<Code extends string = string> {
  readonly status: number;
  readonly code: Code;
  readonly description: string;
}

type Row<Code extends string> = readonly [status: number, code: Code, description: string];

function catalog<const Code extends string>(rows: readonly Row<Code>[]): readonly CatalogEntry<Code>[] {
  return rows.map(([status, code, description]) => ({ status, code, description }));
}

/** Lookup and usage: 26 codes, most of which any call can meet. */
export const lookupErrorCodes = catalog([
  [400, 'invalid_ip', 'The IP is missing, malformed, private or reserved; send one public address.'],
  [400, 'invalid_query', 'The query parameters do not match the endpoint.'],
  [400, 'invalid_json', 'The body is not valid JSON.'],
  [400, 'invalid_body', 'The body has the wrong shape or extra properties.'],
  [400, 'invalid_range', 'The usage dates or parameters are invalid; send at most 31 real UTC days.'],
  [401, 'unauthorized', 'The API key is missing, malformed, invalid, expired or revoked.'],
  [404, 'not_requested', 'Nothing is saved or submitted for this IP; POST to request enrichment.'],
  [404, 'not_found', 'The endpoint does not exist.'],
  [405, 'method_not_allowed', 'The method is not accepted here; see the Allow header.'],
  [413, 'body_too_large', 'The body exceeds the limit of the endpoint.'],
  [414, 'uri_too_long', 'The URL exceeds 512 characters.'],
  [415, 'unsupported_media_type', 'The Content-Type is not application/json.'],
  [415, 'unsupported_encoding', 'The request has a Content-Encoding header; send the body as it is.'],
  [429, 'rate_limit', 'This key exceeded its request rate.'],
  [429, 'api_rate_limit', 'The shared API request capacity is reached.'],
  [429, 'lookup_capacity', 'Too many distinct IP lookups are in flight.'],
  [
    429,
    'pending_limit',
    'The partner reached its limit of unfinished enrichments; saved lookups still work.',
  ],
  [
    429,
    'enrichment_limit',
    'The key used its daily allowance of new enrichments; wait for the next UTC day.',
  ],
  [429, 'enrichment_capacity', 'The shared enrichment intake is full; repeating does not speed it up.'],
  [503, 'api_busy', 'The service is temporarily busy.'],
  [
    503,
    'backend_unavailable',
    'The request could not be completed; a POST may still have submitted. Repeat it.',
  ],
  [503, 'backend_timeout', 'The request took too long; this is not a no-company result.'],
  [503, 'submission_unconfirmed', 'A reservation exists but is unconfirmed; repeat the POST, then poll.'],
  [
    503,
    'lookup_reconciliation_required',
    'The work is complete but its saved lookup is unavailable; retry later.',
  ],
  [503, 'usage_unavailable', 'Usage reporting is unavailable; a POST may already be submitted.'],
  [503, 'service_unavailable', 'An unexpected temporary failure.'],
]);

/** Trackers, sessions and reveals: 20 codes. */
export const trackingErrorCodes = catalog([
  [400, 'invalid_origin', 'An origin is not a serialised https origin, or is listed twice.'],
  [400, 'invalid_tracker', 'A tracker id or field is invalid.'],
  [400, 'invalid_capture', 'The captured visit is invalid.'],
  [400, 'invalid_custom_parameters', 'The custom labels are not a flat object within the limits.'],
  [400, 'invalid_cursor', 'The cursor was not given by this list, or belongs to another filter.'],
  [400, 'invalid_idempotency_key', 'The Idempotency-Key header is missing or no UUID v4.'],
  [403, 'untrusted_collector', 'The visit was sent to a host that does not collect for this tracker.'],
  [
    403,
    'tracker_origin_denied',
    'The tracker does not collect from this origin; check origins and enabled state.',
  ],
  [404, 'tracker_not_found', 'No such tracker; check the id and the partner account.'],
  [404, 'session_not_found', 'No such session; check the id and the partner account.'],
  [404, 'reveal_not_found', 'No such reveal; check the id and the partner account.'],
  [409, 'idempotency_conflict', 'The Idempotency-Key was used for another session; use a new one.'],
  [409, 'tracker_disabled', 'The tracker is disabled; enable it first.'],
  [410, 'tracker_deleted', 'The tracker is deleted and cannot be enabled again.'],
  [410, 'session_expired', 'The session is no longer available.'],
  [410, 'reveal_expired', 'The receipt is no longer available; billing counts remain.'],
  [429, 'tracking_capacity', 'Tracking capacity is reached; follow Retry-After.'],
  [429, 'tracker_limit', 'The partner has its 1,000 trackers; delete one first.'],
  [503, 'tracking_unavailable', 'Tracking is unavailable; retry with the same Idempotency-Key or visit.'],
  [503, 'reveal_unconfirmed', 'The reveal is unconfirmed; retry with the same Idempotency-Key.'],
]);

/**
 * Webhooks, without the two codes that stand in the tables above
 * (`method_not_allowed`, `tracker_not_found`): 12, which makes 58 in all.
 */
export const webhookErrorCodes = catalog([
  [400, 'invalid_webhook', 'A webhook field is invalid.'],
  [400, 'invalid_webhook_url', 'The URL is not a public https URL on port 443.'],
  [400, 'invalid_webhook_query', 'The query parameters or the cursor are invalid.'],
  [404, 'webhook_not_found', 'No such webhook; check the id and the partner account.'],
  [404, 'webhook_delivery_not_found', 'No such delivery; check the id and the partner account.'],
  [409, 'webhook_disabled', 'The webhook is paused or deleted; enable it first.'],
  [409, 'webhook_rotation_pending', 'A secret rotation is running; wait for the overlap to end.'],
  [410, 'webhook_event_expired', 'The payload of this event is no longer available.'],
  [429, 'webhook_limit', 'The partner has all the webhooks it can have; delete one first.'],
  [429, 'webhook_management_limit', 'Too many webhook management calls; follow Retry-After.'],
  [503, 'webhook_queue_full', 'The delivery queue is full; nothing was queued.'],
  [503, 'webhooks_unavailable', 'Webhooks are unavailable; nothing was delivered.'],
]);

/** Codes of custom domains: additions, so they have a catalog of their own. */
export const doorplateErrorCodes = catalog([
  [400, 'invalid_domain', 'The host name is not one that a custom domain can have.'],
  [404, 'domain_not_found', 'No such domain; check the ids and the partner account.'],
  [409, 'domain_taken', 'The host name belongs to another tracker.'],
  [429, 'domain_limit', 'The tracker has all the domains it can have; delete one first.'],
]);

const everyEntry = [...lookupErrorCodes, ...trackingErrorCodes, ...webhookErrorCodes, ...doorplateErrorCodes];

/** Any code of any catalog. */
export type ErrorCode = (typeof everyEntry)[number]['code'];

/** The message of every 503 (contract, Errors 2). */
export const UNAVAILABLE_MESSAGE = 'Service temporarily unavailable; retry later';

/** Seconds to wait where the caller of `refusal` knows no better; every other 429 says 1, every other 503 says 5. */
const retryAfterSeconds: Partial<Record<ErrorCode, number>> = {
  pending_limit: 15,
  enrichment_limit: 3600,
  enrichment_capacity: 60,
  tracker_limit: 60,
  webhook_limit: 60,
  webhook_management_limit: 60,
  domain_limit: 60,
  lookup_reconciliation_required: 15,
  webhook_queue_full: 60,
};

interface Prepared {
  readonly status: number;
  /** The answer's text up to the request's id, with the default message. */
  readonly opening: string;
  readonly retryAfter: number | null;
}

const prepared = Object.fromEntries(everyEntry.map((entry) => [entry.code, prepare(entry)])) as Readonly<
  Record<ErrorCode, Prepared>
>;

function prepare({ status, code, description }: CatalogEntry<ErrorCode>): Prepared {
  const message = status === 503 ? UNAVAILABLE_MESSAGE : description;
  const fallback = status === 503 ? 5 : status === 429 ? 1 : null;
  return { status, opening: opening(code, message), retryAfter: retryAfterSeconds[code] ?? fallback };
}

function opening(code: string, message: string): string {
  return `{"error":{"code":"${code}","message":${JSON.stringify(message)}},"request_id":"`;
}

/** The status that the catalogs give a code. */
export function statusOf(code: ErrorCode): number {
  return prepared[code].status;
}

export interface RefusalOptions {
  /** Seconds, rounded up and at least 1; sent with 429 and 503 alone, which have a default. */
  readonly retryAfter?: number;
  /** In place of the catalog's words; ignored for 503, whose message is fixed. */
  readonly message?: string;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The answer that refuses a request with `code`: Error body, status and the headers that the status demands. */
export function refusal(
  request: { readonly id: string },
  code: ErrorCode,
  options: RefusalOptions = {},
): Reply {
  const entry = prepared[code];
  const reworded = options.message !== undefined && entry.status !== 503;
  const start = reworded ? opening(code, options.message ?? '') : entry.opening;
  const headers: Record<string, string> = { ...options.headers };
  if (entry.retryAfter !== null) headers['retry-after'] = seconds(options.retryAfter ?? entry.retryAfter);
  if (entry.status === 401) headers['www-authenticate'] = 'Bearer realm="partner"';
  return { status: entry.status, body: `${start}${request.id}"}`, headers, code };
}

const seconds = (value: number) => String(Math.max(1, Math.ceil(value)));
