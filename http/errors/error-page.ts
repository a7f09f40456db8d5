/** GET /docs/errors: each error code, what it means in a partner's program and what to do. */
import { FAVICON } from '../docs/mark.ts';
import {
  type CatalogEntry,
  doorplateErrorCodes,
  type ErrorCode,
  lookupErrorCodes,
  trackingErrorCodes,
  webhookErrorCodes,
} from './error-catalog.ts';

const WAIT = 'Wait as long as Retry-After says, then send the same request again.';
const SAFE = `${WAIT} Repeating is safe.`;
const FIX = 'Correct the request; sending it again as it is gives the same answer.';
const CHECK_ID = 'Check the id, and that the key belongs to the same partner.';
const DELETE_ONE = 'Delete one that is not needed.';

/** What to do about a status, where the code's own advice has nothing better. */
const actionOf = (status: number): string => (status >= 429 ? WAIT : status === 404 ? CHECK_ID : FIX);

/** What is said beyond the catalog's description, and what to do. */
interface Advice {
  readonly more?: string;
  readonly action?: string;
}

const errorAdvice: Partial<Readonly<Record<ErrorCode, Advice>>> = {
  invalid_ip: {
    more: 'Tunnel addresses, ports, CIDR suffixes, zone ids and unusual spellings are refused too.',
    action: 'Send the visitor’s own public address. Behind a proxy, take it from the header that it sets.',
  },
  invalid_query: { more: 'One is missing, sent twice, or not defined for this path.' },
  invalid_json: { more: 'It is empty, not JSON, or not UTF-8.' },
  invalid_body: { more: 'Some paths take none.' },
  invalid_range: {
    more: 'from must be before to; to alone is refused.',
    action: 'Split longer ranges into several requests.',
  },
  unauthorized: {
    more: 'Or its header is sent twice.',
    action:
      'Send one header “Authorization: Bearer KEY”. If it is right, ask the owner of the account for a new key.',
  },
  not_requested: {
    more: 'This is not a negative match.',
    action: 'POST /v1/lookup with the address, then poll.',
  },
  not_found: { more: 'A trailing slash makes another path.', action: FIX },
  method_not_allowed: { action: 'Use a method of the Allow header.' },
  body_too_large: { more: 'It is 1,024 bytes for a lookup.' },
  unsupported_encoding: { action: 'Send the body uncompressed.' },
  rate_limit: {
    more: 'Or your account its 10,000 changes of trackers, domains and keys of a day.',
    action: `${WAIT} Spread requests, or ask for a higher limit.`,
  },
  pending_limit: {
    action: 'Poll those that are under way; new addresses are accepted when some have ended.',
  },
  enrichment_limit: {
    more: 'Saved results still answer.',
    action: 'Wait for the next UTC day, or ask for a higher allowance.',
  },
  api_busy: { more: 'More work waits than it finishes in two seconds. Nothing was done.' },
  backend_unavailable: { action: SAFE },
  backend_timeout: { more: 'It may have been done.', action: SAFE },
  submission_unconfirmed: {
    more: 'It is not lost.',
    action: 'Repeat the POST, then poll. The reservation is not counted twice.',
  },
  usage_unavailable: { more: 'The request is not counted.', action: SAFE },
  service_unavailable: {
    more: 'The request may have been done.',
    action: `${WAIT} If it stays, tell the operator the request_id.`,
  },
  invalid_origin: {
    more: 'Its form is https://host[:port]: lower case, punycode, no path, no default port.',
  },
  invalid_capture: { action: 'Use the snippet; it sends the right form.' },
  invalid_custom_parameters: {
    more: 'At most 32, 2,048 bytes in all, names beginning with a letter, strings of at most 512 characters.',
    action: 'Correct data-custom in the snippet.',
  },
  invalid_cursor: {
    action: 'Use next_cursor of the same list and filter. Without a cursor the list begins at its start.',
  },
  invalid_idempotency_key: { action: 'Make one UUID v4 a reveal.' },
  untrusted_collector: { action: 'Use the snippet of the tracker, or of its active domain.' },
  tracker_origin_denied: { action: 'Add the origin, or enable the tracker.' },
  idempotency_conflict: {
    action: 'Use a new key for a new reveal. To read the earlier one, GET its receipt.',
  },
  tracker_disabled: { action: 'Enable it first.' },
  tracker_deleted: { more: 'Its usage and receipts stay readable.', action: 'Create another tracker.' },
  session_expired: {
    more: 'Sessions are kept for 30 days after they began.',
    action: 'It cannot be revealed any more.',
  },
  reveal_expired: {
    more: 'Receipts are kept for 30 days after their session began.',
    action: 'Keep receipts of your own.',
  },
  tracking_capacity: { more: 'More captures or reveals came than the limits allow.' },
  tracker_limit: { action: DELETE_ONE },
  tracking_unavailable: {
    more: 'The visit or reveal may have been stored.',
    action: `${WAIT} Use the same visit_id or Idempotency-Key, so that nothing is doubled.`,
  },
  reveal_unconfirmed: {
    action: `${WAIT} Use the same Idempotency-Key, so that there is one reveal and at most one unit.`,
  },
  invalid_webhook_url: { more: 'Or it has credentials or a fragment, or is the service’s own.' },
  webhook_delivery_not_found: { more: 'Deliveries are kept for 90 days.' },
  webhook_disabled: { action: 'Enable it first.' },
  webhook_rotation_pending: { action: 'Wait until secret_rotation_until.' },
  webhook_event_expired: {
    more: 'Bodies of events are kept for 30 days after their session began.',
    action: 'It cannot be delivered again.',
  },
  webhook_limit: { action: DELETE_ONE },
  webhook_queue_full: { more: 'Too many deliveries are pending, or too many bodies kept.' },
  domain_taken: {
    action: 'If the name is yours, add the TXT record that the message names, and send the request again.',
  },
  domain_limit: { more: 'Your account has 100 at most.', action: DELETE_ONE },
};

const SECTIONS: readonly (readonly [title: string, codes: readonly CatalogEntry<ErrorCode>[]])[] = [
  ['Lookup, usage and every call', lookupErrorCodes],
  ['Trackers, sessions and reveals', trackingErrorCodes],
  ['Webhooks', webhookErrorCodes],
  ['Custom domains', doorplateErrorCodes],
];

function entryOf({ status, code, description }: CatalogEntry<ErrorCode>): string {
  const { more, action = actionOf(status) } = errorAdvice[code] ?? {};
  return `<article id="${code}">
<h3><a href="#${code}">${code}</a> <small>${status}</small></h3>
<p>${description}${more === undefined ? '' : ` ${more}`}</p>
<p><strong>What to do:</strong> ${action}</p>
</article>`;
}

const sections = SECTIONS.map(
  ([title, codes]) => `<section>\n<h2>${title}</h2>\n${codes.map(entryOf).join('\n')}\n</section>`,
);

/** Makes a page in the style of the documentation. `head`: lines of further elements, before the style. */
export const documentationPage = (title: string, head: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="${FAVICON}">
${head}<link rel="stylesheet" href="/docs/page.css">
</head>
<body>
<header class="top"><a href="/docs"><img src="${FAVICON}" alt="">Doorplate</a><a href="/docs/errors">Errors</a><a href="/dashboard">Dashboard</a></header>
${body}
</body>
</html>
`;

/** The page; every code is an anchor (`/docs/errors#rate_limit`). */
export const errorPage = documentationPage(
  'Doorplate API: errors',
  '',
  `<main>
<h1>Errors</h1>
<p>Every error has the body <code>{"error": {"code", "message"}, "request_id"}</code>. No error, time-out or 202 is ever a
negative match: only a 200 with <code>company_found=false</code> is. <a href="/docs">The API’s reference</a>.</p>
${sections.join('\n')}
</main>`,
);
