/** What the service under test has made by now, so that requests can name it. */
import fc from 'fast-check';

export interface Known {
  /** Active, disabled, deleted, and another partner's. */
  readonly trackers: string[];
  readonly sessions: string[];
  readonly reveals: string[];
  readonly cursors: string[];
  readonly webhooks: string[];
  readonly deliveries: string[];
  readonly domains: string[];
}

export const nothingKnown = (): Known => ({
  trackers: [],
  sessions: [],
  reveals: [],
  cursors: [],
  webhooks: [],
  deliveries: [],
  domains: [],
});

/** The first ones stay, so that some grow old. */
const STAY = 60;
const MOST = 300;

/** Takes what an answer names. */
export const createNoting = (known: Known): ((text: string) => void) => {
  const { sessions, reveals, cursors, webhooks, deliveries, domains } = known;
  const kinds = [
    { all: sessions, pattern: /"session_id":"([^"]+)"/g },
    { all: reveals, pattern: /"reveal_id":"([^"]+)"/g },
    { all: cursors, pattern: /"next_cursor":"([^"]+)"/g },
    // The first of a webhook's own fields.
    { all: webhooks, pattern: /"id":"([^"]+)","name":"[^"]*","url":/g },
    { all: domains, pattern: /"id":"([^"]+)","tracker_id":"[^"]+","hostname":/g },
    { all: deliveries, pattern: /"(?:delivery_)?id":"([^"]+)","event_id":/g },
  ].map((kind) => ({ ...kind, seen: new Set<string>() }));
  return (text) => {
    for (const { all, pattern, seen } of kinds) {
      for (const [, name = ''] of text.matchAll(pattern)) {
        if (seen.has(name)) continue;
        seen.add(name);
        if (all.length < MOST) all.push(name);
        else all[STAY + (seen.size % (MOST - STAY))] = name;
      }
    }
  };
};

/** One of them, as they are when the request is made; `otherwise` while there is none. */
export const oneOf = (all: readonly string[], otherwise: string): fc.Arbitrary<string> =>
  fc.noBias(fc.nat(9_999)).map((n) => all[n % all.length] ?? otherwise);
