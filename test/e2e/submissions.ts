/** Reservations and their submissions in the event log. */
import type { EventStore, RecordedEvent } from '../../event-store/port.ts';

export interface ReservationRow {
  readonly partner_id: string;
  readonly ip: string;
  readonly made: number;
  readonly submitted: number;
  readonly settled: number;
}

/** The events of streams with reservations and their submissions. */
export const SUBMISSION_PREFIXES: readonly string[] = ['intake-', 'enrichment-'];

/** Every event in the log up to now on streams with this prefix. */
export const readLog = async (store: EventStore, prefixes: readonly string[]): Promise<RecordedEvent[]> => {
  const head = await store.head();
  const events: RecordedEvent[] = [];
  if (head === null) return events;
  const done = new AbortController();
  for await (const batch of store.follow({ after: null, prefixes, signal: done.signal })) {
    events.push(...batch.events);
    if (batch.position >= head) break;
  }
  done.abort();
  return events;
};

/** How often each reservation was made, attached to an enrichment and settled. */
export const reservationsIn = (events: readonly RecordedEvent[]): ReservationRow[] => {
  const rows = new Map<
    string,
    { partner_id: string; ip: string; made: number; submitted: number; settled: number }
  >();
  const row = (id: string) => {
    const known = rows.get(id) ?? { partner_id: '', ip: '', made: 0, submitted: 0, settled: 0 };
    rows.set(id, known);
    return known;
  };
  for (const { type, data } of events) {
    const fields = data as {
      reservation_id: string;
      partner_id: string;
      ip: string;
      reservation?: { reservation_id: string };
    };
    if (type === 'lookup.ReservationMade.v1') {
      const made = row(fields.reservation_id);
      made.made += 1;
      made.partner_id = fields.partner_id;
      made.ip = fields.ip;
    }
    if (type === 'lookup.ReservationSettled.v1') row(fields.reservation_id).settled += 1;
    const joins = type === 'lookup.EnrichmentRequested.v1' || type === 'lookup.EnrichmentJoined.v1';
    if (joins && fields.reservation) row(fields.reservation.reservation_id).submitted += 1;
  }
  return [...rows.values()];
};

/** How many rounds were started for each address. */
export const roundsIn = (events: readonly RecordedEvent[]): Map<string, number> => {
  const rounds = new Map<string, number>();
  for (const { type, data } of events) {
    const { ip } = data as { ip: string };
    if (type === 'lookup.EnrichmentRequested.v1') rounds.set(ip, (rounds.get(ip) ?? 0) + 1);
  }
  return rounds;
};
