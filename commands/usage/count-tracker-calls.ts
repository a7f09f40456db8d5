import { plusCalls, type TrackerCalls } from '../../domain/usage/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { createGroupCounter } from './group-counter.ts';
import { hourOf } from './hour.ts';

/** A successful API call about a tracker (contract, Trackers 2). */
export interface TrackerCall {
  /** Whether the status was not 202. */
  readonly completed: boolean;
  /** Whether the result named a company. */
  readonly company: boolean;
}

export interface TrackerCallCounter {
  /** Resolves once the count is durable. @throws CountNotDurable */
  capture(trackerId: string): Promise<void>;
  /** Resolves once the count is durable. @throws CountNotDurable */
  call(trackerId: string, call: TrackerCall): Promise<void>;
  close(): Promise<void>;
}

/** Counts captures and API calls by tracker and hour. */
export const createTrackerCallCounter = (store: EventStore, clock: Clock): TrackerCallCounter => {
  const counter = createGroupCounter<TrackerCalls>(store, clock, {
    keyOf: ([tracker, hour]) => `${tracker} ${hour}`,
    plus: plusCalls,
    counted: (counts) => ({ type: 'usage.TrackerCallsCounted.v1', data: { counts } }),
    corrected: (counts) => ({ type: 'usage.TrackerCallsCorrected.v1', data: { counts } }),
  });
  const hour = () => hourOf(clock.now());
  return {
    capture: (trackerId) => counter.count([trackerId, hour(), 1, 0, 0, 0]),
    call: (trackerId, { completed, company }) =>
      counter.count([trackerId, hour(), 0, 1, completed ? 1 : 0, company ? 1 : 0]),
    close: () => counter.close(),
  };
};
