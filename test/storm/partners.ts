/** The partners of a storm, and what the service told each of them. */
import type { Called } from '../support/call.ts';

/** A browser tab that visits a partner's website. */
export interface Tab {
  readonly token: string;
  readonly ip: string;
  /** When the first 204 came, milliseconds of the monotonic clock; null: none came yet. */
  acknowledgedAt: number | null;
  /** Whether the feed has shown its session. */
  shown: boolean;
}

/** What is asked with one Idempotency-Key. */
export interface AskedReveal {
  readonly sessionId: string;
  /** null: no answer told it yet. */
  revealId: string | null;
}

/** Requests by what their answers say of counting. */
export interface Counting {
  /** Their answers say that they are counted. */
  received: number;
  /** The connection or process was cut, or a 503 came that may have been counted or not. */
  uncertain: number;
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
  /** By token. */
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

export const newPartner = (made: Pick<Partner, 'partnerId' | 'key' | 'trackerId' | 'webhook'>): Partner => ({
  ...made,
  submitted: new Set(),
  lookups: { received: 0, uncertain: 0 },
  captures: { received: 0, uncertain: 0 },
  tabs: new Map(),
  feed: [],
  cursor: '',
  toReveal: [],
  reveals: new Map(),
  events: new Map(),
  receivedEvents: new Set(),
});

/** Notes what the answer to a lookup says of its counting; null: there was none. */
export const noteLookup = ({ lookups }: Partner, answer: Called | null): void => {
  if (answer?.body?.error?.code === 'usage_unavailable') return;
  // A 503 from before the key was known is not counted, one from after it is.
  if (answer === null || answer.status === 503) lookups.uncertain += 1;
  else lookups.received += 1;
};

/** Notes what the answer to a capture says of its counting; null: there was none. */
export const noteCapture = ({ captures }: Partner, answer: Called | null): void => {
  if (answer?.status === 204) captures.received += 1;
  else captures.uncertain += 1;
};
