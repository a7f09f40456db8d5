import type { Decider } from '../domain/kernel/decider.ts';
import { type FutureTimeMark, reportFutureTime } from '../platform/clock/clock.ts';

/** Wraps a decider to report each decision on state that a fast clock has left behind. */
export const reportingAhead = <State, Command, Event, Refusal extends string>(
  decider: Decider<State, Command, Event, Refusal>,
  mark: FutureTimeMark,
  isAhead: (state: State, command: Command) => boolean,
): Decider<State, Command, Event, Refusal> => ({
  ...decider,
  decide: (command, state) => {
    if (isAhead(state, command)) reportFutureTime(mark);
    return decider.decide(command, state);
  },
});
