import { DAY, isoTime } from '../kernel/time.ts';
import { type RevealEvent, revealResultSchema } from '../reveals/events.ts';
import { EMPTY_RESULT } from '../reveals/reveal.ts';
import { type Envelope, revealEnvelope, sessionEnvelope, testEnvelope } from './envelope.ts';
import type { DeliveredType } from './events.ts';

const SESSION = '00000000-0000-4000-8000-000000000001';
const TRACKER = '00000000-0000-4000-8000-000000000002';
const REVEAL = '00000000-0000-4000-8000-000000000003';
const LABELS = { sample: true };
const LIFETIME_MS = 30 * DAY;

/**
 * Makes a sample of an event with made-up data: its session, tracker and receipt do not exist, and it has no unit. Its id is that
 * of a test, so that no sample is taken for an event.
 * @param at milliseconds
 */
export function sampleEnvelope(type: DeliveredType, id: string, at: number): Envelope {
  const now = isoTime(at);
  const expires_at = isoTime(at + LIFETIME_MS);
  const known = { session_id: SESSION, tracker_id: TRACKER, partner_id: SESSION, expires_at };
  switch (type) {
    case 'webhook.test':
      return testEnvelope(id, now);
    case 'session.created': {
      const session = { ...known, visit_id: SESSION, visitor: '', visitor_country: 'DE', sealed: '' };
      return { ...sessionEnvelope({ ...session, first_seen_at: now }, 'Sample website', LABELS), id };
    }
    case 'reveal.completed':
      return { ...revealEnvelope({ ...known, ...sampleReveal(now) }, LABELS), id };
  }
}

type Completed = Extract<RevealEvent, { type: 'reveals.RevealCompleted.v1' }>['data'];

const sampleReveal = (
  now: string,
): Omit<Completed, 'session_id' | 'tracker_id' | 'partner_id' | 'expires_at'> => ({
  ...{ reveal_id: REVEAL, key_id: null, user_id: null, created_at: now, completed_at: now, billable: false },
  result: revealResultSchema.parse({
    ...EMPTY_RESULT,
    match_type: 'company',
    company_found: true,
    enriched_at: now,
    company: {
      name: 'Sample Company Ltd (made up)',
      website: 'https://sample-company.example',
      industry: 'Software',
      city: 'Berlin',
      country_code: 'DE',
      country_name: 'Germany',
      employees: '11-50',
    },
  }),
});
