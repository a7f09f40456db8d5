import { setImmediate } from 'node:timers/promises';
import { DAY, isoTime, utcDay } from '../../domain/kernel/time.ts';
import {
  type Clue,
  KEPT_DAYS,
  signalEvents,
  signalsExpireAt,
  signalsStream,
  visitorText,
} from '../../domain/signals/events.ts';
import type { Observation } from '../../domain/signals/observation.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { appendSafely, type CommandContext, toNewEvents } from '../handle.ts';
import { isLeftOut } from './left-out-domains.ts';

/** The keys of days, under which addresses and domains are hidden. */
export interface SignalKeys {
  of(day: string): Promise<SignalKey | null>;
}

interface SignalKey {
  digest(text: string): string;
  seal(plain: Buffer, about: string): Buffer;
}

export interface ObserveDeps {
  readonly store: EventStore;
  readonly keys: SignalKeys;
  /** Keyed, and the same on all days: clues of several days are counted together. */
  readonly digest: (text: string) => string;
}

export interface Observed {
  /** The event's id; null: there was nothing to write. */
  readonly batch: string | null;
  /** The names of its clues, each once. */
  readonly eventIds: readonly string[];
  /** null where the store does not say. */
  readonly position: Position | null;
}

/** Takes a millisecond or two. */
const CLUES_PER_TURN = 100;

/**
 * Writes down a batch in one event, durably. It may be sent again after any failure: whoever reads counts the first
 * clue of each name.
 * @throws OutcomeUnknown when it may have been written, and the port's other errors when it was not
 */
export const observeSignals = async (
  { store, keys, digest }: ObserveDeps,
  observations: readonly Observation[],
  context: CommandContext,
): Promise<Observed> => {
  const firsts = new Map<string, Observation>();
  for (const one of observations) if (!firsts.has(one.event_id)) firsts.set(one.event_id, one);
  const eventIds = [...firsts.keys()];
  if (eventIds.length === 0) return { batch: null, eventIds, position: null };

  const day = utcDay(context.at);
  const key = await keys.of(day);
  if (key === null) throw new TypeError(`the key of ${day} is gone`);
  const clueOf = clueFrom(key, digest, context.at);
  const clues: Clue[] = [];
  const left_out: string[] = [];
  for (const one of firsts.values()) {
    const isOld = one.occurred_at <= context.at - KEPT_DAYS * DAY;
    if (isOld || isLeftOut(one.email_domain)) left_out.push(one.event_id);
    else {
      clues.push(clueOf(one));
      // A lookup in this process does not wait for a whole batch.
      if (clues.length % CLUES_PER_TURN === 0) await setImmediate();
    }
  }
  const [event] = toNewEvents(
    signalEvents,
    [{ type: 'signals.SignalsObserved.v1', data: { day, clues, left_out } }],
    { ...context, expiresAt: signalsExpireAt(day) },
  );
  if (event === undefined) throw new TypeError('one event');
  // Nothing is decided on what stands there.
  const { position } = await appendSafely(store, signalsStream(day), 'any', [event]);
  return { batch: event.id, eventIds, position };
};

/** `at`: now, which no clue is later than, whatever the sender's clock says. */
const clueFrom = (key: SignalKey, digest: (text: string) => string, at: number) => {
  // A batch has few domains and sites, often few addresses. One secret text of a domain serves all its clues.
  const known = new Map<string, string>();
  const once = (text: string, make: (text: string) => string): string => {
    const digested = known.get(text) ?? make(text);
    known.set(text, digested);
    return digested;
  };
  return ({ event_id, ip, email_domain, ...seen }: Observation): Clue => {
    const domain = once(`signal domain ${email_domain}`, digest);
    return {
      event_id,
      visitor: once(visitorText(ip), (text) => key.digest(text)),
      domain,
      site: once(`signal site ${seen.site} ${seen.installation_id}`, digest),
      page_run: seen.page_run_id === null ? null : digest(`signal page run ${seen.page_run_id}`),
      submitted: seen.submitted,
      occurred_at: isoTime(Math.min(seen.occurred_at, at)),
      sealed: once(`sealed ${domain}`, () => key.seal(Buffer.from(email_domain), domain).toString('base64')),
    };
  };
};
