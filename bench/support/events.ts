import { createHash } from 'node:crypto';
import { v7 as uuid } from 'uuid';
import { companyRecord } from '../../cli/installation/company-record.ts';
import {
  type EnrichmentEvent,
  enrichmentStream,
  type IntakeEvent,
  type Reservation,
} from '../../domain/lookup/events.ts';
import { intakeStream } from '../../domain/lookup/intake.ts';
import { companySchema, networkSchema, type SavedResult } from '../../domain/lookup/result.ts';
import { type UsageEvent, usageStream } from '../../domain/usage/events.ts';
import type { EventStore, NewEvent } from '../../event-store/port.ts';
import { addressOf } from './addresses.ts';

const PARTNERS = Array.from({ length: 10 }, () => uuid());
const KEYS = PARTNERS.map((partner) => `key_${partner.replaceAll('-', '').slice(0, 24)}`);
const BOOT = uuid();
const DAY_MS = 86_400_000;
/** Lookups in one step of the generation: their reservations are one append, as in a batch. */
const STEP = 100;
/** For each lookup: reserved, requested, completed, settled, and one count of answers. */
const EVENTS_A_LOOKUP = 5;
const AT_ONCE = 8;

const stored = ({ type, data }: { readonly type: string; readonly data: object }, at: string): NewEvent => {
  const id = uuid();
  return { id, type, data, metadata: { $correlationId: id, $causationId: id, at } };
};

const savedResult = (number: number, at: number): SavedResult => {
  const { match_type, network, company } = companyRecord(number);
  return {
    ip: addressOf(number),
    match_type,
    network: networkSchema.parse(network),
    company: companySchema.parse(company),
    sources: ['directory'],
    enriched_at: new Date(at).toISOString(),
    fresh_until: new Date(at + 30 * DAY_MS).toISOString(),
    needs_company_enrichment: false,
    answered_by: ['directory'],
  };
};

/**
 * Fills a store with the events of lookups: reservations and settlements on their partners' intakes, request and
 * completion on a stream of the address, and counts of answers. Returns the number of events.
 */
export const appendMixedEvents = async (store: EventStore, events: number): Promise<number> => {
  const steps = Math.round(events / (STEP * EVENTS_A_LOOKUP));
  await inParallel(steps, (step) => appendStep(store, step));
  return steps * STEP * EVENTS_A_LOOKUP;
};

const appendStep = async (store: EventStore, step: number): Promise<void> => {
  const at = Date.now();
  const now = new Date(at).toISOString();
  const partner_id = PARTNERS[step % PARTNERS.length] as string;
  const key_id = KEYS[step % KEYS.length] as string;
  const numbers = Array.from({ length: STEP }, (_, index) => step * STEP + index);
  const reservations = numbers.map(
    (): Reservation => ({ reservation_id: uuid(), partner_id, key_id, submitted_at: now }),
  );
  const made = reservations.map(({ reservation_id }, index): IntakeEvent => {
    const ip = addressOf(numbers[index] as number);
    return {
      type: 'lookup.ReservationMade.v1',
      data: { reservation_id, partner_id, key_id, ip, kind: 'first', made_at: now },
    };
  });
  const settled = reservations.map(
    ({ reservation_id }): IntakeEvent => ({
      type: 'lookup.ReservationSettled.v1',
      data: { reservation_id, partner_id, settled_at: now },
    }),
  );
  const counted = numbers.map(
    (number): UsageEvent => ({
      type: 'usage.LookupsCounted.v1',
      data: {
        counts: [
          [key_id, now.slice(0, 13), 'company', 1 + (number % 40), 1 + (number % 40), 12_000],
          [key_id, now.slice(0, 13), 'enqueued', 1 + (number % 3), 0, 4_000],
        ],
      },
    }),
  );
  const all = (some: readonly { type: string; data: object }[]) => some.map((event) => stored(event, now));
  await store.append(intakeStream(partner_id), 'any', all(made));
  await Promise.all(
    numbers.map((number, index) =>
      store.append(
        enrichmentStream(digestOf(addressOf(number))),
        'no_stream',
        all(workOn(number, reservations[index] as Reservation, at)),
      ),
    ),
  );
  await store.append(intakeStream(partner_id), 'any', all(settled));
  await store.append(usageStream(`${BOOT}-${step % AT_ONCE}`, now.slice(0, 10)), 'any', all(counted));
};

const workOn = (number: number, reservation: Reservation, at: number): EnrichmentEvent[] => [
  {
    type: 'lookup.EnrichmentRequested.v1',
    data: {
      ip: addressOf(number),
      round: 1,
      kind: 'first',
      requested_at: reservation.submitted_at,
      reservation,
    },
  },
  {
    type: 'lookup.EnrichmentCompleted.v1',
    data: { round: 1, attempt: 1, result: savedResult(number, at), settles: [reservation] },
  },
];

const digestOf = (ip: string): string => createHash('sha256').update(ip).digest('base64url').slice(0, 32);

/** Runs the numbered steps with limited concurrency. */
const inParallel = async (steps: number, work: (step: number) => Promise<void>): Promise<void> => {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < steps) {
      const step = next;
      next += 1;
      await work(step);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
};
