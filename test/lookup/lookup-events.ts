import type { EnrichmentEvent, IntakeEvent, Reservation, WorkKind } from '../../domain/lookup/events.ts';
import { companySchema, networkSchema, type SavedResult } from '../../domain/lookup/result.ts';

export const AT = Date.parse('2026-03-01T12:00:00.000Z');
export const IP = '8.8.8.8';
export const ANNA = '11111111-1111-4111-8111-111111111111';
export const BERT = '22222222-2222-4222-8222-222222222222';

export const reservation = (partner_id = ANNA, nth = 1): Reservation => ({
  reservation_id: `${String(nth).padStart(8, '0')}-0000-4000-8000-${partner_id.slice(-12)}`,
  partner_id,
  key_id: `key_of_${partner_id.slice(0, 4)}`,
  submitted_at: new Date(AT).toISOString(),
});

export const result = (over: Partial<SavedResult> = {}): SavedResult => ({
  ip: IP,
  match_type: 'company',
  network: networkSchema.parse({ is_isp: false }),
  company: companySchema.parse({ name: 'Acme' }),
  sources: ['directory'],
  enriched_at: new Date(AT).toISOString(),
  fresh_until: new Date(AT + 30 * 86_400_000).toISOString(),
  needs_company_enrichment: false,
  answered_by: ['directory'],
  ...over,
});

export const requested = (
  round = 1,
  kind: WorkKind = 'first',
  by: Reservation | null = reservation(),
): EnrichmentEvent => ({
  type: 'lookup.EnrichmentRequested.v1',
  data: { ip: IP, round, kind, requested_at: new Date(AT).toISOString(), reservation: by },
});

export const joined = (by: Reservation, round = 1): EnrichmentEvent => ({
  type: 'lookup.EnrichmentJoined.v1',
  data: { ip: IP, round, reservation: by },
});

export const failed = (attempt: number, round = 1): EnrichmentEvent => ({
  type: 'lookup.EnrichmentAttemptFailed.v1',
  data: {
    ip: IP,
    round,
    attempt,
    failed_at: new Date(AT).toISOString(),
    next_attempt_at: new Date(AT + 15_000).toISOString(),
    failures: [{ provider: 'http', reason: 'timed out' }],
  },
});

export const completed = (
  over: Partial<SavedResult> = {},
  {
    round = 1,
    attempt = 1,
    settles = [reservation()],
  }: { round?: number; attempt?: number; settles?: Reservation[] } = {},
): EnrichmentEvent => ({
  type: 'lookup.EnrichmentCompleted.v1',
  data: { round, attempt, result: result(over), settles },
});

export const made = (nth: number, ip: string, at = AT, key_id = 'key_a'): IntakeEvent => ({
  type: 'lookup.ReservationMade.v1',
  data: {
    reservation_id: reservation(ANNA, nth).reservation_id,
    partner_id: ANNA,
    key_id,
    ip,
    kind: 'first',
    made_at: new Date(at).toISOString(),
  },
});

export const settled = (nth: number, at = AT): IntakeEvent => ({
  type: 'lookup.ReservationSettled.v1',
  data: {
    reservation_id: reservation(ANNA, nth).reservation_id,
    partner_id: ANNA,
    settled_at: new Date(at).toISOString(),
  },
});
