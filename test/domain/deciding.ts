import { expect } from 'vitest';
import type { Decider } from '../../domain/kernel/decider.ts';

/** Given events, when a command is decided, then these events (or this refusal) come of it. */
export const given = <State, Command, Event, Refusal extends string>(
  decider: Decider<State, Command, Event, Refusal>,
  events: readonly Event[],
) => {
  const state = events.reduce(decider.evolve, decider.initial);
  return {
    when: (command: Command) => {
      const decision = decider.decide(command, state);
      return {
        thenEvents: (expected: readonly unknown[]) => {
          expect(decision).toEqual({ ok: true, value: expected });
          if (!decision.ok) return;
          // The same command once more, on what it led to, changes nothing.
          const after = decision.value.reduce(decider.evolve, state);
          expect(decider.decide(command, after)).toEqual({ ok: true, value: [] });
        },
        thenRefused: (refusal: Refusal) => expect(decision).toEqual({ ok: false, refusal }),
      };
    },
  };
};
