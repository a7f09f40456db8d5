/** GET /docs/errors: each error code, what it means in a partner's program and what to do. */
import {
  type CatalogEntry,
  doorplateErrorCodes,
  type ErrorCode,
  lookupErrorCodes,
  trackingErrorCodes,
  webhookErrorCodes,
} from './error-catalog.ts';

type Advice = readonly [meaning: string, action: string];

const WAIT = 'Wait as long as Retry-After says, then send the same request again.';
const FIX = 'Correct the request; sending it again as it is gives the same answer.';
const CHECK_ID = 'Check the id, and that the key belongs to the same partner.';

const errorAdvice: Readonly<Record<ErrorCode, Advice>> = {
  invalid_ip: [
    'The value is not one public IPv4 or IPv6 address in a usual spelling: private, reserved and tunnel addresses, ports, CIDR suffixes and zone ids are refused.',
    'Send the visitor’s own public address. Behind a proxy, take it from the header that the proxy sets.',
  ],
  invalid_query: ['A parameter is missing, sent twice, or not defined for this path.', FIX],
  invalid_json: ['The body is empty, not JSON, or not UTF-8.', FIX],
  invalid_body: ['The JSON is not an object, has extra properties, or the path takes no body.', FIX],
  invalid_range: [
    'from and to must be real UTC dates, from before to, at most 31 days apart; to alone is refused.',
    'Split longer ranges into several requests.',
  ],
  unauthorized: [
    'The Authorization header is missing, sent twice or malformed, or the key is unknown, expired or revoked.',
    'Send one header “Authorization: Bearer KEY”. If it is right, ask the owner of the account for a new key.',
  ],
  not_requested: [
    'Nothing is saved for this address and your account has not asked for it. This is not a negative match.',
    'POST /v1/lookup with the address, then poll.',
  ],
  not_found: ['No such path. A trailing slash makes another path.', FIX],
  method_not_allowed: ['The path exists, and this method does not.', 'Use a method of the Allow header.'],
  body_too_large: ['The body is larger than this path takes: 1,024 bytes for a lookup.', FIX],
  uri_too_long: ['Path and query have more than 512 characters.', FIX],
  unsupported_media_type: ['The Content-Type is missing or not application/json.', FIX],
  unsupported_encoding: ['The request has a Content-Encoding header.', 'Send the body uncompressed.'],
  rate_limit: [
    'The key has used its requests of this second, or your account its 10,000 changes of trackers, domains and keys of a day.',
    `${WAIT} Spread requests, or ask for a higher limit.`,
  ],
  api_rate_limit: ['All callers together have used the service’s requests of this second.', WAIT],
  lookup_capacity: ['Too many distinct addresses are being looked up at this moment.', WAIT],
  pending_limit: [
    'Your account has as many unfinished enrichments as it may have. Saved results still answer.',
    'Poll those that are under way; new addresses are accepted when some have ended.',
  ],
  enrichment_limit: [
    'The key has used its new enrichments of this UTC day. Saved results still answer.',
    'Wait for the next UTC day, or ask for a higher allowance.',
  ],
  enrichment_capacity: [
    'The service takes no new enrichments at this moment, from any partner.',
    `${WAIT} Sending it more often does not help.`,
  ],
  api_busy: ['More work waits than the service finishes in two seconds. Nothing was done.', WAIT],
  backend_unavailable: [
    'The service’s storage is away. A POST may have been done.',
    `${WAIT} Repeating is safe.`,
  ],
  backend_timeout: [
    'The request took longer than five seconds. It may have been done. This is not a negative match.',
    `${WAIT} Repeating is safe.`,
  ],
  submission_unconfirmed: [
    'The enrichment is reserved for you, and its start is not confirmed yet. It is not lost.',
    'Repeat the POST, then poll. The reservation is not counted twice.',
  ],
  lookup_reconciliation_required: [
    'The enrichment has ended and its result cannot be read at this moment.',
    WAIT,
  ],
  usage_unavailable: [
    'The answer could not be counted, so it was not given; or usage cannot be read. The request is not counted. A POST may have been done.',
    `${WAIT} Repeating is safe.`,
  ],
  service_unavailable: [
    'An unexpected failure. The request may have been done.',
    `${WAIT} If it stays, tell the operator the request_id.`,
  ],
  invalid_origin: [
    'An origin is not in serialised form (https://host[:port], lower case, punycode, no path, no default port), or is listed twice.',
    FIX,
  ],
  invalid_tracker: ['The tracker’s id, name or reference is not of its form.', FIX],
  invalid_capture: ['The pixel’s request is not of its form.', 'Use the snippet; it sends the right form.'],
  invalid_custom_parameters: [
    'Labels must be flat: at most 32, 2,048 bytes in all, names beginning with a letter, strings of at most 512 characters.',
    'Correct data-custom in the snippet.',
  ],
  invalid_cursor: [
    'The cursor was not given by this list, or with another filter.',
    'Use next_cursor of the same list and filter. Without a cursor the list begins at its start.',
  ],
  invalid_idempotency_key: [
    'The Idempotency-Key header is missing or not a UUID v4.',
    'Make one UUID v4 a reveal.',
  ],
  untrusted_collector: [
    'The visit was sent to a host that is neither the service’s own nor an active custom domain of the tracker.',
    'Use the snippet of the tracker, or of its active domain.',
  ],
  tracker_origin_denied: [
    'The page’s origin is none of the tracker’s, or the tracker is disabled.',
    'Add the origin, or enable the tracker.',
  ],
  tracker_not_found: ['Your account has no such tracker.', CHECK_ID],
  session_not_found: ['Your account has no such session, or it expired long ago.', CHECK_ID],
  reveal_not_found: ['Your account has no such reveal, or it expired long ago.', CHECK_ID],
  idempotency_conflict: [
    'This Idempotency-Key was used for another session.',
    'Use a new key for a new reveal. To read the earlier one, GET its receipt.',
  ],
  tracker_disabled: ['A disabled tracker takes no new reveals.', 'Enable it first.'],
  tracker_deleted: [
    'The tracker is deleted for good. Its usage and receipts stay readable.',
    'Create another tracker.',
  ],
  session_expired: ['Sessions are kept for 30 days after they began.', 'It cannot be revealed any more.'],
  reveal_expired: [
    'Receipts are kept for 30 days after their session began. The unit stays billed.',
    'Keep receipts of your own.',
  ],
  tracking_capacity: ['More captures or reveals came than the limits allow.', WAIT],
  tracker_limit: ['Your account has its 1,000 trackers.', 'Delete one that is not needed.'],
  tracking_unavailable: [
    'The visit or reveal could not be stored. It may have been stored.',
    `${WAIT} Use the same visit_id or Idempotency-Key, so that nothing is doubled.`,
  ],
  reveal_unconfirmed: [
    'The reveal may have been made.',
    `${WAIT} Use the same Idempotency-Key, so that there is one reveal and at most one unit.`,
  ],
  invalid_webhook: ['A field of the endpoint is not of its form.', FIX],
  invalid_webhook_url: [
    'The URL is not https on port 443 with a public host name, or has credentials or a fragment, or is the service’s own.',
    FIX,
  ],
  invalid_webhook_query: ['A parameter, a status or the cursor is not one of this list.', FIX],
  webhook_not_found: ['Your account has no such endpoint.', CHECK_ID],
  webhook_delivery_not_found: ['The endpoint has no such delivery, or it is older than 90 days.', CHECK_ID],
  webhook_disabled: ['The endpoint is paused or deleted.', 'Enable it first.'],
  webhook_rotation_pending: [
    'Both secrets of the last rotation still sign.',
    'Wait until secret_rotation_until.',
  ],
  webhook_event_expired: [
    'Bodies of events are kept for 30 days after their session began.',
    'It cannot be delivered again.',
  ],
  webhook_limit: ['Your account has all the endpoints that it may have.', 'Delete one that is not needed.'],
  webhook_management_limit: ['Too many management calls this minute.', WAIT],
  webhook_queue_full: ['Too many deliveries are pending, or too many bodies kept. Nothing was queued.', WAIT],
  webhooks_unavailable: ['Webhooks cannot be managed at this moment.', WAIT],
  invalid_domain: ['The host name is not one that a custom domain can have.', FIX],
  domain_not_found: ['The tracker has no such domain.', CHECK_ID],
  domain_taken: [
    'The host name is another tracker’s.',
    'If the name is yours, add the TXT record that the message names, and send the request again.',
  ],
  domain_limit: ['The tracker has 10 domains, or your account 100.', 'Delete one that is not needed.'],
};

const SECTIONS: readonly (readonly [title: string, codes: readonly CatalogEntry<ErrorCode>[]])[] = [
  ['Lookup, usage and every call', lookupErrorCodes],
  ['Trackers, sessions and reveals', trackingErrorCodes],
  ['Webhooks', webhookErrorCodes],
  ['Custom domains', doorplateErrorCodes],
];

const entryOf = ({ status, code }: CatalogEntry<ErrorCode>): string => {
  const [meaning, action] = errorAdvice[code];
  return `<article id="${code}">
<h3><a href="#${code}">${code}</a> <small>${status}</small></h3>
<p>${meaning}</p>
<p><strong>What to do:</strong> ${action}</p>
</article>`;
};

const sections = SECTIONS.map(
  ([title, codes]) => `<section>\n<h2>${title}</h2>\n${codes.map(entryOf).join('\n')}\n</section>`,
);

/** The page; every code is an anchor (`/docs/errors#rate_limit`). */
export const errorPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Doorplate API: errors</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/page.css">
</head>
<body>
<main>
<h1>Errors</h1>
<p>Every error has the body <code>{"error": {"code", "message"}, "request_id"}</code>. No error, time-out or 202 is ever a
negative match: only a 200 with <code>company_found=false</code> is. <a href="/docs">The API’s reference</a>.</p>
${sections.join('\n')}
</main>
</body>
</html>
`;
