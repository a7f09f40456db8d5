/** The partners of a storm, and the service's answers to each of them. */
import type { Called } from '../support/call.ts';

/** A browser tab that visits a partner's website from one address: one session. */
export interface Tab {
  /** The label that the session shows. */
  readonly label: string;
  readonly token: string;
  readonly ip: string;
  /** When the first 204 came, milliseconds of the monotonic clock; null: none came yet. */
  acknowledgedAt: number | null;
  /** Whether the feed has shown its session. */
  shown: boolean;
}

/** A reveal request of one Idempotency-Key. */
export interface AskedReveal {
  readonly sessionId: string;
  /** null: no response named it yet. */
  revealId: string | null;
}

/** Requests by what their responses imply for counting. */
export interface Counting {
  /** A response that is counted: its count was durable before it was sent. */
  answered: number;
  /** A 503 that may come from before or after the request was counted. */
  unavailable: number;
  /** No response: the connection or process was cut, or hung. */
  cut: number;
  /** 503 `usage_unavailable`: not counted. */
  uncounted: number;
}

export interface Partner {
  readonly partnerId: string;
  readonly key: string;
  readonly trackerId: string;
  readonly webhook: { readonly id: string; readonly signing_secret: string };
  /** Addresses whose submission a 200 or 202 acknowledged. */
  readonly submitted: Set<string>;
  readonly lookups: Counting;
  readonly captures: Counting;
  /** By label. */
  readonly tabs: Map<string, Tab>;
  /** The session ids that a follower of the feed received, in order. */
  readonly feed: string[];
  cursor: string;
  /** Sessions that the partner has yet to reveal. */
  readonly toReveal: string[];
  /** By Idempotency-Key. */
  readonly reveals: Map<string, AskedReveal>;
  /** By event id: the body of the first delivery. */
  readonly events: Map<string, string>;
  /** Event ids that the receiver acknowledged. */
  readonly receivedEvents: Set<string>;
}

const noRequests = (): Counting => ({ answered: 0, unavailable: 0, cut: 0, uncounted: 0 });

export const newPartner = (made: Pick<Partner, 'partnerId' | 'key' | 'trackerId' | 'webhook'>): Partner => ({
  ...made,
  submitted: new Set(),
  lookups: noRequests(),
  captures: noRequests(),
  tabs: new Map(),
  feed: [],
  cursor: '',
  toReveal: [],
  reveals: new Map(),
  events: new Map(),
  receivedEvents: new Set(),
});

/** Records what a response implies for its count; null: there was none. */
export const noteCounting = (counting: Counting, answer: Called | null): void => {
  if (answer === null) counting.cut += 1;
  else if (answer.status !== 503) counting.answered += 1;
  else if (answer.body?.error?.code === 'usage_unavailable') counting.uncounted += 1;
  else counting.unavailable += 1;
};
