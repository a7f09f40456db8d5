import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';
import { shownText } from '../kernel/visibility.ts';
import { enrichmentEvents } from '../lookup/events.ts';

const instant = z.iso.datetime();
const { match_type, company, network } = enrichmentEvents['lookup.EnrichmentCompleted.v1'].shape.result.shape;

/** A saved result frozen at the reveal's completion (contract, Reveals 3). */
export const revealResultSchema = z.object({
  status: z.literal('complete'),
  match_type,
  company_found: z.boolean(),
  enriched_at: instant.nullable(),
  company,
  network,
  stale: z.boolean(),
  fresh_until: instant.nullable(),
  refresh_status: z.enum(['not_needed', 'not_requested', 'pending', 'deferred']),
  refresh_error: z
    .enum([
      'pending_limit',
      'enrichment_limit',
      'enrichment_capacity',
      'submission_unconfirmed',
      'lookup_failed',
    ])
    .nullable(),
});
export type RevealResult = z.output<typeof revealResultSchema>;

/** Facts that both events of a reveal repeat, so that the completion alone is enough for a row, a bill or a webhook. */
export const revealFacts = z.object({
  reveal_id: z.uuid(),
  session_id: z.uuid(),
  tracker_id: z.uuid(),
  partner_id: z.uuid(),
  /** The caller: an API key or a dashboard user; the other is null. */
  key_id: shownText().nullable(),
  user_id: shownText().nullable(),
  created_at: instant,
  /** The session's expiry. */
  expires_at: instant,
});

export type RevealFacts = z.output<typeof revealFacts>;

/** Stream `reveal-<uuidv5 of partner and Idempotency-Key>`, whose UUID is the reveal's id: one reveal. */
export const revealEvents = {
  'reveals.RevealRequested.v1': revealFacts,
  'reveals.RevealCompleted.v1': revealFacts.extend({
    completed_at: instant,
    /** Whether it costs one unit, because its result is nonempty. */
    billable: z.boolean(),
    result: revealResultSchema,
  }),
} as const;
export type RevealEvent = EventOf<typeof revealEvents>;

/** Stream `expired-<partner>-<utc day>`, which `SessionsExpired` shares. */
export const revealExpiryEvents = {
  'reveals.RevealsExpired.v1': z.object({
    partner_id: z.uuid(),
    /** Reveal id and time of expiry. */
    reveals: z.array(z.tuple([z.uuid(), instant])),
    /** Why they ended before their time; absent: they did not. */
    reason: shownText().optional(),
  }),
} as const;

export const REVEAL_PREFIX = 'reveal-';
