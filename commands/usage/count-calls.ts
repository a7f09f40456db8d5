import { HOUR } from '../../domain/kernel/time.ts';
import {
  callsKey,
  type LookupCount,
  lookupKey,
  type Outcome,
  plus,
  plusCalls,
  type TrackerCalls,
} from '../../domain/usage/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import { type Clock, iso } from '../../platform/clock/clock.ts';
import { GroupCounter } from './group-counter.ts';

/** Formats the UTC hour of an instant as `YYYY-MM-DDTHH`, caching the last one. */
export const hourOf = (() => {
  let known = { number: -1, text: '' };
  return (at: number): string => {
    const number = Math.floor(at / HOUR);
    if (number !== known.number) known = { number, text: iso(at).slice(0, 13) };
    return known.text;
  };
})();

interface CountedLookup {
  readonly keyId: string;
  readonly outcome: Outcome;
  readonly served: boolean;
  readonly durationMs: number;
}

/** Counts the lookup responses of this process by key, hour and outcome. */
export function createLookupCounter(store: EventStore, clock: Clock) {
  const counter = new GroupCounter<LookupCount>(store, clock, {
    keyOf: lookupKey,
    plus,
    counted: (counts) => ({ type: 'usage.LookupsCounted.v1', data: { counts } }),
    corrected: (counts) => ({ type: 'usage.LookupsCorrected.v1', data: { counts } }),
  });
  return {
    /** Resolves once the count is durable. @throws CountNotDurable */
    count: ({ keyId, outcome, served, durationMs }: CountedLookup): Promise<void> =>
      counter.count([keyId, hourOf(clock.now()), outcome, 1, served ? 1 : 0, Math.round(durationMs * 1_000)]),
    close: () => counter.close(),
  };
}
export type LookupCounter = ReturnType<typeof createLookupCounter>;

/** A successful API call about a tracker (contract, Trackers 2). */
export interface TrackerCall {
  /** Whether the status was not 202. */
  readonly completed: boolean;
  /** Whether the result named a company. */
  readonly company: boolean;
}

/** Counts captures and API calls by tracker and hour. Each count resolves once it is durable, or throws CountNotDurable. */
export function createTrackerCallCounter(store: EventStore, clock: Clock) {
  const counter = new GroupCounter<TrackerCalls>(store, clock, {
    keyOf: callsKey,
    plus: plusCalls,
    counted: (counts) => ({ type: 'usage.TrackerCallsCounted.v1', data: { counts } }),
    corrected: (counts) => ({ type: 'usage.TrackerCallsCorrected.v1', data: { counts } }),
  });
  const hour = () => hourOf(clock.now());
  return {
    capture: (trackerId: string): Promise<void> => counter.count([trackerId, hour(), 1, 0, 0, 0]),
    call: (trackerId: string, { completed, company }: TrackerCall): Promise<void> =>
      counter.count([trackerId, hour(), 0, 1, completed ? 1 : 0, company ? 1 : 0]),
    close: () => counter.close(),
  };
}
export type TrackerCallCounter = ReturnType<typeof createTrackerCallCounter>;
