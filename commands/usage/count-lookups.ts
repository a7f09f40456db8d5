import { type LookupCount, type Outcome, plus } from '../../domain/usage/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { createGroupCounter } from './group-counter.ts';
import { hourOf } from './hour.ts';

export interface CountedLookup {
  readonly keyId: string;
  readonly outcome: Outcome;
  readonly served: boolean;
  readonly durationMs: number;
}

export interface LookupCounter {
  /** Resolves once the count is durable. @throws CountNotDurable */
  count(lookup: CountedLookup): Promise<void>;
  close(): Promise<void>;
}

/** Counts the lookup responses of this process by key, hour and outcome. */
export const createLookupCounter = (store: EventStore, clock: Clock): LookupCounter => {
  const counter = createGroupCounter<LookupCount>(store, clock, {
    keyOf: ([key, hour, outcome]) => `${key} ${hour} ${outcome}`,
    plus,
    counted: (counts) => ({ type: 'usage.LookupsCounted.v1', data: { counts } }),
    corrected: (counts) => ({ type: 'usage.LookupsCorrected.v1', data: { counts } }),
  });
  return {
    count: ({ keyId, outcome, served, durationMs }) =>
      counter.count([keyId, hourOf(clock.now()), outcome, 1, served ? 1 : 0, Math.round(durationMs * 1_000)]),
    close: () => counter.close(),
  };
};
