/** What a decision comes to: a value, or a refusal whose name is (or maps to) an error code of the API. */
export type Result<T, R extends string> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: R };

export const accept = <T>(value: T): { readonly ok: true; readonly value: T } => ({ ok: true, value });
export const refuse = <R extends string>(refusal: R): { readonly ok: false; readonly refusal: R } => ({
  ok: false,
  refusal,
});

/**
 * One kind of stream: how its events make a state, and what a command does to that state.
 * `decide` is pure and repeat-safe: the same command on the state that it led to yields no events.
 */
export interface Decider<State, Command, Event, Refusal extends string> {
  readonly initial: State;
  decide(command: Command, state: State): Result<readonly Event[], Refusal>;
  evolve(state: State, event: Event): State;
}

/** Ends every switch over a union, so that the compiler finds what was forgotten. */
export const unreachable = (value: never): never => {
  throw new TypeError(`not foreseen: ${JSON.stringify(value)}`);
};
