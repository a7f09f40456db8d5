import type { Product } from './product.ts';

export interface Effort {
  readonly rounds: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
  /** The size of the log from which read models are rebuilt. */
  readonly events: number;
  readonly saved: number;
}

export const FULL: Effort = {
  rounds: 5,
  warmUpSeconds: 2,
  seconds: 6,
  events: 500_000,
  saved: 1_000_000,
};
export const QUICK: Effort = {
  rounds: 2,
  warmUpSeconds: 1,
  seconds: 2,
  events: 40_000,
  saved: 100_000,
};

/** The state that rows share. */
export interface Bench {
  readonly effort: Effort;
  /** EventStoreDB, where one is given. */
  readonly eventStoreUrl: string | undefined;
  /** The service that most rows load, started on first use, on the embedded PostgreSQL. */
  product(): Promise<Product>;
  endProduct(): Promise<void>;
  /** The largest rates that rows have found, by operation, in requests a second. */
  readonly maxima: Map<'saved lookups' | 'submissions', number>;
  /** Reserves this many numbers of unused addresses and returns the first. */
  freshAddresses(count: number): number;
  /** Cleanups, run when the run ends, however it ends; the last one first. */
  defer(undo: () => Promise<void>): void;
  say(text: string): void;
}

export interface Figure {
  readonly of: string;
  readonly value: number;
  readonly unit: string;
}

export interface Line {
  readonly row: string;
  /** `a` to `b`. */
  readonly ratio: number;
  /** null: for information. */
  readonly target: { readonly atLeast: number } | { readonly atMost: number } | null;
  readonly a: Figure;
  readonly b: Figure;
  /** Further observations: where the CPU went, and sizes. */
  readonly notes: readonly string[];
}

export interface Row {
  /** Its name on the command line. */
  readonly name: string;
  run(bench: Bench): Promise<readonly Line[]>;
}
