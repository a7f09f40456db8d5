/** Outcome of a decision: a value, or a refusal whose name is (or maps to) an error code of the API. */
export type Result<T, R extends string> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: R };

export const accept = <T>(value: T): { readonly ok: true; readonly value: T } => ({ ok: true, value });
export const refuse = <R extends string>(refusal: R): { readonly ok: false; readonly refusal: R } => ({
  ok: false,
  refusal,
});

/**
 * A kind of stream: how events make a state, and how commands change it. `decide` is pure and idempotent: repeating a
 * command on the resulting state yields no events.
 */
export interface Decider<State, Command, Event, Refusal extends string> {
  readonly initial: State;
  decide(command: Command, state: State): Result<readonly Event[], Refusal>;
  evolve(state: State, event: Event): State;
}

/** Ends every switch over a union, so that the compiler reports missing cases. */
export function unreachable(value: never): never {
  throw new TypeError(`unexpected value: ${JSON.stringify(value)}`);
}
