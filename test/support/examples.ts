/** Example data for analysts: two partners with some of everything. */
import { randomUUID } from 'node:crypto';
import { companySchema, networkSchema } from '../../domain/lookup/result.ts';
import type { EventStore } from '../../event-store/port.ts';
import { ANNA, AT, BERT, made, requested, reservation, result, settled } from '../lookup/lookup-events.ts';
import { aDelivery, attempted, created, queued, removed } from './deliveries.ts';
import { completedReveal, revealAppend, revealStream } from './reveals.ts';

const [SITE, SHOP] = [
  'aaaaaaaa-0000-4000-8000-000000000001',
  'aaaaaaaa-0000-4000-8000-000000000002',
] as const;
const HOOK = 'bbbbbbbb-0000-4000-8000-000000000001';
const OLD_HOOK = 'bbbbbbbb-0000-4000-8000-000000000002';

/** Is part of every value that no analyst may see; the addresses are listed beside it. */
export const CANARY = 'CANARY';
export const ADDRESSES = ['8.8.8.8', '9.9.9.9', '1.1.1.1', '4.4.4.4'] as const;

const HOUR = 3_600_000;
const iso = (at: number): string => new Date(at).toISOString();
const limits = {
  requests_per_second: 50,
  new_enrichments_per_day: null,
  pending_enrichments: 10,
  company_signals: false,
  expires_at: null,
};

type ExampleEvent = { readonly type: string; readonly data: object };

const ofPartner = (partner_id: string, name: string, key_id: string): ExampleEvent[] => [
  { type: 'partners.PartnerCreated.v1', data: { partner_id, name, created_at: iso(AT) } },
  {
    type: 'partners.KeyCreated.v1',
    data: { ...limits, partner_id, key_id, name: 'key', hash: `${CANARY}-${key_id}`, created_at: iso(AT) },
  },
];

const tracker = (tracker_id: string, partner_id: string, name: string): ExampleEvent => ({
  type: 'trackers.TrackerCreated.v1',
  data: {
    tracker_id,
    partner_id,
    name,
    origins: ['https://www.example.com'],
    customer_reference: CANARY,
    created_at: iso(AT),
  },
});

const lookup = (ip: string, match_type: string, company: object | null, days: number): ExampleEvent => ({
  type: 'lookup.EnrichmentCompleted.v1',
  data: {
    round: 1,
    attempt: 1,
    settles: ip === ADDRESSES[0] ? [reservation()] : [],
    result: {
      ...result({ ip, fresh_until: iso(AT + days * 24 * HOUR) }),
      match_type,
      company: company && companySchema.parse(company),
      network: networkSchema.parse({ is_isp: match_type === 'isp' }),
    },
  },
});

const session = (tracker_id: string, partner_id: string, country: string | null, hours: number) => {
  const at = AT - hours * HOUR;
  const session_id = randomUUID();
  return {
    session_id,
    event: {
      type: 'sessions.SessionCreated.v1',
      data: {
        session_id,
        tracker_id,
        partner_id,
        visit_id: randomUUID(),
        visitor: CANARY,
        visitor_country: country,
        first_seen_at: iso(at),
        expires_at: iso(at + 30 * 24 * HOUR),
        sealed: CANARY,
      },
    },
  };
};

const reveal = (name: string | null, tracker_id: string, partner_id: string, over: object = {}) => {
  const completed_at = iso(AT - HOUR);
  const one = completedReveal(
    { partner_id, tracker_id, completed_at, key_id: 'key_a', ...over },
    name !== null,
  );
  if (name === null) return one;
  return { ...one, result: { ...one.result, company: companySchema.parse({ name, industry: 'Software' }) } };
};

const endpoint = (webhook_id: string, partner_id: string): ExampleEvent => {
  const one = created({ webhook_id, partner_id }, AT);
  const secret = { master_key_id: 'k', sealed: CANARY };
  return { ...one, data: { ...one.data, url: `https://hooks.example.com/${CANARY}`, secret } };
};

/** Appends all of it, at the clock's noon of March 1st 2026. */
export const makeExamples = async (store: EventStore): Promise<void> => {
  const put = async (stream: string, ...events: readonly ExampleEvent[]): Promise<void> => {
    const metadata = { $correlationId: 'c', $causationId: 'c', at: iso(AT) };
    await store.append(
      stream,
      'any',
      events.map((event) => ({ ...event, id: randomUUID(), metadata })),
    );
  };
  await put(`partner-${ANNA}`, ...ofPartner(ANNA, 'Anna', 'key_a'));
  await put(`partner-${BERT}`, ...ofPartner(BERT, 'Bert', 'key_b'));
  await put(
    `intake-${ANNA}`,
    made(1, ADDRESSES[0], AT - 60_000),
    made(2, ADDRESSES[1]),
    made(3, ADDRESSES[2]),
  );
  await put(
    'enrichment-a',
    requested(),
    lookup(ADDRESSES[0], 'company', { name: 'Acme', industry: 'Software' }, 30),
  );
  await put(`intake-${ANNA}`, settled(1), settled(2));
  await put('enrichment-b', lookup(ADDRESSES[1], 'isp', null, 7));
  await put('enrichment-c', lookup(ADDRESSES[2], 'company', { name: 'Beta', industry: 'Software' }, -1));
  await put('enrichment-d', lookup(ADDRESSES[3], 'unclassified', null, 7));
  const counts = [
    ['key_a', '2026-03-01T10', 'company', 10, 8, 30_000],
    ['key_a', '2026-03-01T11', 'error', 2, 0, 10_000],
    ['key_b', '2026-03-01T10', 'isp', 4, 4, 8_000],
    ['key_b', '2026-02-28T10', 'isp', 100, 100, 8_000],
  ];
  await put('usage-x-2026-03-01', { type: 'usage.LookupsCounted.v1', data: { counts: counts.slice(0, 2) } });
  await put('usage-y-2026-03-01', { type: 'usage.LookupsCounted.v1', data: { counts } });
  const calls = [[SITE, '2026-03-01T11', 7, 3, 2, 1]];
  await put('usage-x-2026-03-01', { type: 'usage.TrackerCallsCounted.v1', data: { counts: calls } });

  await put(`trackers-${ANNA}`, tracker(SITE, ANNA, 'site'));
  await put(`trackers-${BERT}`, tracker(SHOP, BERT, 'shop'));
  const visits = [
    session(SITE, ANNA, 'DE', 1),
    session(SITE, ANNA, 'DE', 1),
    session(SITE, ANNA, 'US', 25),
    session(SHOP, BERT, null, 1),
  ];
  for (const { session_id, event } of visits) await put(`tab-${session_id}`, event);
  const found = [
    reveal('Acme', SITE, ANNA, { session_id: visits[0]?.session_id }),
    reveal('Acme', SITE, ANNA, { session_id: visits[1]?.session_id, key_id: null, user_id: CANARY }),
    reveal('Beta', SITE, ANNA, { completed_at: '2026-02-27T10:00:00.000Z' }),
    reveal(null, SITE, ANNA),
    reveal('Acme', SHOP, BERT, { key_id: 'key_b' }),
  ];
  for (const one of found) await store.append(revealStream(one.reveal_id), 'any', revealAppend(one));

  const hook = { webhook_id: HOOK, partner_id: ANNA };
  const gone = { webhook_id: OLD_HOOK, partner_id: BERT };
  const [one, two, three] = [aDelivery(hook), aDelivery(hook), aDelivery(gone)];
  await put(`webhooks-${ANNA}`, endpoint(HOOK, ANNA));
  await put(`webhooks-${BERT}`, endpoint(OLD_HOOK, BERT), removed(gone, AT + HOUR));
  await put(
    'deliveries-x',
    ...[queued(one, AT, '1'), queued(two, AT, '2'), queued(three, AT, '3')],
    attempted(one, { at: AT + 1_000, error: 'timeout' }),
    attempted(one, { attempt: 2, at: AT + 70_000, error: 'http_status' }),
    attempted(one, { attempt: 3, at: AT + 140_000 }),
    attempted(two, { at: AT + 1_000, error: 'timeout' }),
  );
};
