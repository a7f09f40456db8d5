import { randomUUID } from 'node:crypto';
import type { EventOf } from '../../domain/kernel/events.ts';
import { companySchema, networkSchema } from '../../domain/lookup/result.ts';
import { REVEAL_PREFIX, type RevealResult, type revealEvents } from '../../domain/reveals/events.ts';
import type { EventStore, NewEvent, Position } from '../../event-store/port.ts';

export type Completed = Extract<EventOf<typeof revealEvents>, { type: 'reveals.RevealCompleted.v1' }>['data'];

const DAY_MS = 86_400_000;

export const revealResult = (hasData: boolean): RevealResult => ({
  status: 'complete',
  match_type: hasData ? 'company' : 'unclassified',
  company_found: hasData,
  enriched_at: '2026-02-01T00:00:00.000Z',
  company: hasData ? companySchema.parse({ name: 'Acme' }) : null,
  network: networkSchema.parse({}),
  stale: false,
  fresh_until: '2026-03-01T00:00:00.000Z',
  refresh_status: 'not_needed',
  refresh_error: null,
});

/** The facts of a reveal that a key of a partner asked for; `created_at` in ISO 8601. */
export const revealFactsOf = (partner_id: string, created_at: string) => ({
  reveal_id: randomUUID(),
  session_id: randomUUID(),
  tracker_id: randomUUID(),
  partner_id,
  key_id: 'key_a',
  user_id: null,
  created_at,
  expires_at: new Date(Date.parse(created_at) + 30 * DAY_MS).toISOString(),
});

/** A completed reveal, billable as its result implies. `completed_at` is its creation time too. */
export const completedReveal = (
  over: Partial<Completed> & Pick<Completed, 'partner_id'>,
  hasData = true,
): Completed => {
  const { completed_at = '2026-03-01T12:00:00.000Z' } = over;
  return {
    ...revealFactsOf(over.partner_id, completed_at),
    completed_at,
    billable: hasData,
    result: revealResult(hasData),
    ...over,
  };
};

export const revealStream = (revealId: string): string => `${REVEAL_PREFIX}${revealId}`;

/** RevealRequested and RevealCompleted, as the reveal's own append would hold them. */
export const revealAppend = (completed: Completed): NewEvent[] => {
  const { completed_at: at, billable: _billable, result: _result, ...requested } = completed;
  const event = (type: string, data: object): NewEvent => ({
    id: randomUUID(),
    type,
    data,
    metadata: {
      $correlationId: 'a-request',
      $causationId: 'a-request',
      at,
      expires_at: completed.expires_at,
      partner_id: completed.partner_id,
    },
  });
  return [event('reveals.RevealRequested.v1', requested), event('reveals.RevealCompleted.v1', completed)];
};

/** Appends a completed reveal and returns the position of its RevealCompleted. */
export const complete = async (store: EventStore, completed: Completed): Promise<Position> => {
  const stream = revealStream(completed.reveal_id);
  const { position } = await store.append(stream, 'no_stream', revealAppend(completed));
  return position as Position;
};
