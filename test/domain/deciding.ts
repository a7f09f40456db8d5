import { expect } from 'vitest';
import type { Decider } from '../../domain/kernel/decider.ts';

/** Given events, when a command is decided, then these events (or this refusal) follow. */
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
          // Repeating the command on the resulting state must change nothing.
          const after = decision.value.reduce(decider.evolve, state);
          expect(decider.decide(command, after)).toEqual({ ok: true, value: [] });
        },
        thenRefused: (refusal: Refusal) => expect(decision).toEqual({ ok: false, refusal }),
      };
    },
  };
};
