import { anchorEvents, auditEvents, billingEvents } from './billing/events.ts';
import { epochEvents } from './epochs/epochs.ts';
import { domainEvents, domainSlotEvents } from './hostnames/events.ts';
import type { EventSchemas } from './kernel/events.ts';
import { enrichmentEvents, intakeEvents } from './lookup/events.ts';
import { partnerEvents, teamEvents, userEvents } from './partners/events.ts';
import { revealEvents, revealExpiryEvents } from './reveals/events.ts';
import { sessionEvents, sessionExpiryEvents } from './sessions/events.ts';
import { signalEvents } from './signals/events.ts';
import { trackerEvents } from './trackers/events.ts';
import { trackerHourEvents, usageEvents } from './usage/events.ts';
import { deliveryEvents, endpointEvents, payloadEvents, payloadExpiryEvents } from './webhooks/events.ts';

export interface CataloguedStream {
  readonly stream: string;
  readonly about: string;
  readonly lives: string;
  readonly events: EventSchemas;
}

/** All kinds of streams with their events: listed in `docs/reference/events.md`, and frozen by a test. */
export const eventCatalogue: readonly CataloguedStream[] = [
  {
    stream: 'partner-<partner id>',
    about: 'A partner account and its API keys, stored only as SHA-256.',
    lives: 'for ever',
    events: partnerEvents,
  },
  {
    stream: 'user-<uuidv5 of the name>',
    about: 'A dashboard user; makes its name unique. No event contains a password.',
    lives: 'for ever',
    events: userEvents,
  },
  {
    stream: 'team-<partner id>',
    about:
      "The roles, invitations and second factors of a partner's users; keeps an owner in every team. No event contains a link, a secret or a code.",
    lives: 'for ever',
    events: teamEvents,
  },
  {
    stream: 'intake-<partner id>',
    about: "A partner's requests for enrichment; enforces its daily allowance and pending limit.",
    lives: '90 days back, from the newest snapshot older than that',
    events: intakeEvents,
  },
  {
    stream: 'enrichment-<keyed digest of the address>',
    about: 'The rounds of enrichment of one address and its saved result; deduplicates work per address.',
    lives:
      'until 400 days after the result was last asked for; events of a past day are replaced by a snapshot',
    events: enrichmentEvents,
  },
  {
    stream: 'usage-<boot id>-<utc day>',
    about: 'Counts of the responses of one process on one day, recorded before each response is sent.',
    lives: '400 days; counts of a past day are replaced by totals',
    events: usageEvents,
  },
  {
    stream: 'trackers-<partner id>',
    about: 'The trackers of a partner; enforces their number.',
    lives: 'for ever',
    events: trackerEvents,
  },
  {
    stream: 'tab-<uuidv5 of tracker and token>',
    about: 'The sessions of one browser tab and their visits; decides which session a visit belongs to.',
    lives: '30 days after its last session began',
    events: sessionEvents,
  },
  {
    stream: 'reveal-<uuidv5 of partner and Idempotency-Key>',
    about: 'One reveal, requested and completed; enforces idempotency. The UUID is the reveal id.',
    lives: 'with its session',
    events: revealEvents,
  },
  {
    stream: 'expired-<partner id>-<utc day>',
    about:
      'Ids that expired or were erased on a day, so that the API can answer that they have expired, and counts of what was erased.',
    lives: '60 days',
    events: { ...sessionExpiryEvents, ...revealExpiryEvents, ...payloadExpiryEvents, ...trackerHourEvents },
  },
  {
    stream: 'billing-<partner id>',
    about:
      "A partner's ledger: one entry of 0 or 1 unit per completed reveal, chained by digests (docs/auditing.md).",
    lives: 'for ever',
    events: billingEvents,
  },
  {
    stream: 'anchors-<partner id>',
    about: "Signed statements of what the partner's ledger was, at most one a UTC day (docs/auditing.md).",
    lives: 'for ever',
    events: anchorEvents,
  },
  {
    stream: 'audits-<partner id>',
    about: "Audits of the partner's ledger that its users had made in the dashboard.",
    lives: 'for ever',
    events: auditEvents,
  },
  {
    stream: 'webhooks-<partner id>',
    about:
      'The webhook endpoints of a partner with their sealed secrets, and their recoveries; enforces their number.',
    lives: 'for ever',
    events: endpointEvents,
  },
  {
    stream: 'payload-<event id>',
    about:
      "The body of one webhook event, serialised once for all endpoints and attempts, sealed under its session's day.",
    lives: 'as long as the session',
    events: payloadEvents,
  },
  {
    stream: 'deliveries-<webhook id>-<utc day>',
    about:
      'The deliveries to one endpoint that were created on one day, and their attempts. Events may repeat: the first of a delivery, of a cycle, of an attempt counts.',
    lives: '90 days',
    events: deliveryEvents,
  },
  {
    stream: 'domain-<host name>',
    about:
      'The claims of a host name as a custom domain, at most one of them active, and whether it points to the service.',
    lives: 'for ever',
    events: domainEvents,
  },
  {
    stream: 'domains-<tracker id>',
    about: "The slots of a tracker's custom domains; enforces their number.",
    lives: 'for ever',
    events: domainSlotEvents,
  },
  {
    stream: 'signals-<utc day>',
    about:
      'Clues about companies that another system of the operator sent on one day, with addresses and domains hidden under the key of that day. Clues may repeat: the first of an id counts, on whichever day.',
    lives: '30 days after the day',
    events: signalEvents,
  },
  {
    stream: 'epochs-log',
    about: 'Restores of older backups: the positions where the current log diverged from a lost one.',
    lives: 'for ever',
    events: epochEvents,
  },
];
