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

/** Stream `signals-<utc day>`, later generations with a suffix `~<n>`: the clues received on one day, one event per batch. */
export const signalEvents = {
  'signals.SignalsObserved.v1': z.object({
    /** UTC day of receipt. */
    day: z.iso.date(),
    clues: z.array(clue),
    /** Ids of clues that are not stored: personal mail, test domains, or too old. */
    left_out: z.array(z.string()),
  }),
  /**
   * A batch of the day's earlier stream without the clues that were erased; these are among the ids that are left out. The stream
   * has one for each of the earlier one's events, in their order.
   */
  'signals.SignalsKept.v1': z.object({
    day: z.iso.date(),
    /** Id of the event that the clues came with. */
    batch: z.uuid(),
    clues: z.array(clue),
    left_out: z.array(z.string()),
  }),
} as const;
export type SignalEvent = EventOf<typeof signalEvents>;

export const SIGNALS_PREFIX = 'signals-';
/** Separates day and generation in a stream's name. */
const GENERATION = '~';

/** `generation`: number of streams of the day that erasures have replaced. */
export const signalsStream = (day: string, generation = 0): string =>
  `${SIGNALS_PREFIX}${day}${generation === 0 ? '' : `${GENERATION}${generation}`}`;

/** Returns the generation in a stream's name. */
export const generationOfSignals = (stream: string): number => Number(stream.split(GENERATION)[1] ?? 0);

/** Returns the next generation's stream of a day. */
export const nextSignalsStream = (stream: string): string =>
  signalsStream(
    stream.slice(SIGNALS_PREFIX.length).split(GENERATION)[0] ?? '',
    generationOfSignals(stream) + 1,
  );

/** Returns when all clues of a day have expired and its key is destroyed (ISO 8601). */
export const signalsExpireAt = (day: string): string => isoTime(Date.parse(day) + (1 + KEPT_DAYS) * DAY);

/** Returns the text behind the digest `visitor`; prefixed, so that it differs from the digest of sessions. */
export const visitorText = (ip: string): string => `signal visitor ${ip}`;
