import type { RevealEvent } from '../reveals/events.ts';
import { receiptOfCompletion } from '../reveals/reveal.ts';
import type { CustomParameters, SessionEvent } from '../sessions/events.ts';
import type { DeliveredType } from './events.ts';

type SessionCreated = Extract<SessionEvent, { type: 'sessions.SessionCreated.v1' }>['data'];
type RevealCompleted = Extract<RevealEvent, { type: 'reveals.RevealCompleted.v1' }>['data'];

/** Body of a webhook (contract, Webhooks 3). */
export interface Envelope {
  readonly id: string;
  readonly type: DeliveredType;
  readonly schema_version: 1;
  /** Time of the event: the session began, the reveal completed, or the test was asked for. */
  readonly created_at: string;
  readonly data: object;
}

export const sessionEventId = (sessionId: string): string => `evt_session_${sessionId}`;
export const revealEventId = (revealId: string): string => `evt_reveal_${revealId}`;
export const testEventId = (uuid: string): string => `evt_test_${uuid}`;

/** Makes the body of `session.created`: the session as it began. */
export const sessionEnvelope = (
  { session_id, tracker_id, visitor_country, first_seen_at, expires_at }: SessionCreated,
  customer_reference: string | null,
  custom: CustomParameters,
): Envelope => ({
  id: sessionEventId(session_id),
  type: 'session.created',
  schema_version: 1,
  created_at: first_seen_at,
  data: {
    session_id,
    tracker_id,
    customer_reference,
    custom,
    visitor_country,
    first_seen_at,
    last_seen_at: first_seen_at,
    expires_at,
  },
});

/** Makes the body of `reveal.completed`: the receipt. */
export const revealEnvelope = (reveal: RevealCompleted, custom: CustomParameters): Envelope => ({
  id: revealEventId(reveal.reveal_id),
  type: 'reveal.completed',
  schema_version: 1,
  created_at: reveal.completed_at,
  data: receiptOfCompletion(reveal, custom),
});

/** Makes the body of `webhook.test`. */
export const testEnvelope = (id: string, created_at: string): Envelope => ({
  id,
  type: 'webhook.test',
  schema_version: 1,
  created_at,
  data: { message: 'A test of this webhook endpoint. Nothing happened, and nothing is billed.' },
});
