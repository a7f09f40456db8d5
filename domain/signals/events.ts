import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';
import { DAY, isoTime } from '../kernel/time.ts';

/** Retention (contract, Company signals). */
export const KEPT_DAYS = 30;

/** One clue. Digests are keyed: they show whether two clues are equal, but not their content. */
const clue = z.object({
  /** The sender's id; only the first clue of an id counts. */
  event_id: z.string(),
  /** Digest of the address under the key of `day`. */
  visitor: z.string(),
  /** Digest of the e-mail domain. */
  domain: z.string(),
  /** Digest of website and installation. */
  site: z.string(),
  /** null: none was recorded. */
  page_run: z.string().nullable(),
  /** Whether a submit was observed; otherwise only an e-mail field. */
  submitted: z.boolean(),
  occurred_at: z.iso.datetime(),
  /** The e-mail domain, sealed under the key of `day` and bound to `domain`, base64. */
  sealed: z.string(),
});
export type Clue = z.output<typeof clue>;

/** Stream `signals-<utc day>`: the clues received on one day, one event per batch. */
export const signalEvents = {
  'signals.SignalsObserved.v1': z.object({
    /** UTC day of receipt. */
    day: z.iso.date(),
    clues: z.array(clue),
    /** Ids of clues that are not stored: personal mail, test domains, or too old. */
    left_out: z.array(z.string()),
  }),
} as const;
export type SignalEvent = EventOf<typeof signalEvents>;

export const SIGNALS_PREFIX = 'signals-';
export const signalsStream = (day: string): string => `${SIGNALS_PREFIX}${day}`;

/** Returns when all clues of a day have expired and its key is destroyed (ISO 8601). */
export const signalsExpireAt = (day: string): string => isoTime(Date.parse(day) + (1 + KEPT_DAYS) * DAY);

/** Returns the text behind the digest `visitor`; prefixed, so that it differs from the digest of sessions. */
export const visitorText = (ip: string): string => `signal visitor ${ip}`;
