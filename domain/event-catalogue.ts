import { billingEvents } from './billing/events.ts';
import { domainEvents, domainSlotEvents } from './domains/events.ts';
import { epochEvents } from './epochs/events.ts';
import type { EventSchemas } from './kernel/events.ts';
import { enrichmentEvents, intakeEvents } from './lookup/events.ts';
import { partnerEvents, userEvents } from './partners/events.ts';
import { revealEvents, revealExpiryEvents } from './reveals/events.ts';
import { sessionEvents, sessionExpiryEvents } from './sessions/events.ts';
import { signalEvents } from './signals/events.ts';
import { trackerEvents } from './trackers/events.ts';
import { usageEvents } from './usage/events.ts';
import { deliveryEvents, endpointEvents, payloadEvents, payloadExpiryEvents } from './webhooks/events.ts';

export interface CataloguedStream {
  readonly stream: string;
  readonly about: string;
  readonly lives: string;
  readonly events: EventSchemas;
}

/** Every kind of stream with its events: what `docs/events.md` lists and a test holds frozen. */
export const eventCatalogue: readonly CataloguedStream[] = [
  {
    stream: 'partner-<partner id>',
    about: 'A partner account and its API keys, of which only the SHA-256 is known.',
    lives: 'for ever',
    events: partnerEvents,
  },
  {
    stream: 'user-<uuidv5 of the name>',
    about: 'A user of the dashboard: the boundary of the name, which is given once. Passwords are no events.',
    lives: 'for ever',
    events: userEvents,
  },
  {
    stream: 'intake-<partner id>',
    about: 'What a partner asked to be enriched: the boundary of its daily allowance and pending limit.',
    lives: '90 days back, from the newest snapshot older than that',
    events: intakeEvents,
  },
  {
    stream: 'enrichment-<keyed digest of the address>',
    about: 'The rounds of work on one address, and what is saved of it: one piece of work an address.',
    lives:
      'until 400 days after the result was last asked for; the events of a past day give way to a snapshot',
    events: enrichmentEvents,
  },
  {
    stream: 'usage-<boot id>-<utc day>',
    about: 'What one process answered on one day, counted before it was sent.',
    lives: '400 days; the counts of a past day give way to totals',
    events: usageEvents,
  },
  {
    stream: 'trackers-<partner id>',
    about: 'The lives of all trackers of a partner: the boundary of how many it may have.',
    lives: 'for ever',
    events: trackerEvents,
  },
  {
    stream: 'tab-<uuidv5 of tracker and token>',
    about: 'The sessions of one browser tab, and the visits that made them: which session a visit is of.',
    lives: '30 days after its last session began',
    events: sessionEvents,
  },
  {
    stream: 'reveal-<uuidv5 of partner and Idempotency-Key>',
    about: 'One reveal, asked for and completed: the boundary of its idempotency key. The UUID is its id.',
    lives: 'with its session',
    events: revealEvents,
  },
  {
    stream: 'expired-<partner id>-<utc day>',
    about: 'What expired on a day, by its bare id, so that it is told as gone.',
    lives: '60 days',
    events: { ...sessionExpiryEvents, ...revealExpiryEvents, ...payloadExpiryEvents },
  },
  {
    stream: 'billing-<partner id>',
    about:
      "A partner's ledger: an entry of 0 or 1 unit for every completed reveal, chained by digests (docs/auditing.md).",
    lives: 'for ever',
    events: billingEvents,
  },
  {
    stream: 'webhooks-<partner id>',
    about:
      'The lives of all webhook endpoints of a partner, their secrets sealed: the boundary of how many it may have.',
    lives: 'for ever',
    events: endpointEvents,
  },
  {
    stream: 'payload-<event id>',
    about:
      "The body of one webhook event, serialised once for every endpoint and attempt, sealed under its session's day.",
    lives: 'as long as the session',
    events: payloadEvents,
  },
  {
    stream: 'deliveries-<webhook id>-<utc day>',
    about:
      'What became of the deliveries to one endpoint that were created on one day. Any may stand there twice: the first of a delivery, of a cycle, of an attempt counts.',
    lives: '90 days',
    events: deliveryEvents,
  },
  {
    stream: 'domain-<host name>',
    about: 'Who has a host name as a custom domain, one tracker at a time, and whether it points here.',
    lives: 'for ever',
    events: domainEvents,
  },
  {
    stream: 'domains-<tracker id>',
    about: "The places of a tracker's custom domains: the boundary of how many it may have.",
    lives: 'for ever',
    events: domainSlotEvents,
  },
  {
    stream: 'signals-<utc day>',
    about:
      'Clues about companies that another system of the operator sent on one day, addresses and domains hidden under the key of that day. A clue may stand there twice: the first of its name counts, whichever day it is on.',
    lives: '30 days after the day',
    events: signalEvents,
  },
  {
    stream: 'epochs-log',
    about: 'Restores of older backups: where the log of now has parted from the one that was lost.',
    lives: 'for ever',
    events: epochEvents,
  },
];
