import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';
import { DAY, isoTime } from '../kernel/time.ts';

/** Decisions, CompanySignals: so long they are kept. */
export const KEPT_DAYS = 30;

/**
 * One clue. Digests are keyed and of 32 characters; they tell whether two clues are alike, and nobody without the keys
 * what they are of.
 */
const clue = z.object({
  /** As the sender named it; the first clue of a name counts. */
  event_id: z.string(),
  /** Of the address, under the key of `day`. */
  visitor: z.string(),
  /** Of the e-mail domain. */
  domain: z.string(),
  /** Of website and installation. */
  site: z.string(),
  /** null: none was recorded. */
  page_run: z.string().nullable(),
  /** Whether a submit was seen; else an e-mail field was. */
  submitted: z.boolean(),
  occurred_at: z.iso.datetime(),
  /** The e-mail domain, sealed under the key of `day` and bound to `domain`, base64. */
  sealed: z.string(),
});
export type Clue = z.output<typeof clue>;

/** Stream `signals-<utc day>`: the clues that came on one day, a batch an event. */
export const signalEvents = {
  'signals.SignalsObserved.v1': z.object({
    /** UTC day that they came on. */
    day: z.iso.date(),
    clues: z.array(clue),
    /** Names of clues of which nothing else is kept: personal mail, test domains, or too old. */
    left_out: z.array(z.string()),
  }),
} as const;
export type SignalEvent = EventOf<typeof signalEvents>;

export const SIGNALS_PREFIX = 'signals-';
/** Of one UTC day (`YYYY-MM-DD`). */
export const signalsStream = (day: string): string => `${SIGNALS_PREFIX}${day}`;

/** When all that came on a day has expired, and its key goes (ISO 8601). */
export const signalsExpireAt = (day: string): string => isoTime(Date.parse(day) + (1 + KEPT_DAYS) * DAY);

/** What `visitor` is the digest of: on one day an address is known otherwise to sessions. */
export const visitorText = (ip: string): string => `signal visitor ${ip}`;
