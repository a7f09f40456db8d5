import type { Product } from './product.ts';

/** How long and how often things are measured. */
export interface Effort {
  readonly rounds: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
  /** Events that read models are rebuilt from. */
  readonly events: number;
  /** Saved results in the larger read model. */
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

/** What rows share. */
export interface Bench {
  readonly effort: Effort;
  /** EventStoreDB, where one is given. */
  readonly eventStoreUrl: string | undefined;
  /** The service that most rows load, started when the first one asks for it, on the embedded PostgreSQL. */
  product(): Promise<Product>;
  /** Ends that service. */
  endProduct(): Promise<void>;
  /** Largest rates that rows have found, by what they found it of, in requests a second. */
  readonly maxima: Map<'saved lookups' | 'submissions', number>;
  /** The first of so many numbers of addresses that nobody has asked for yet. */
  freshAddresses(count: number): number;
  /** To be undone when the run ends, however it ends; the last one first. */
  defer(undo: () => Promise<void>): void;
  /** Tells the operator what is going on. */
  say(text: string): void;
}

export interface Figure {
  readonly of: string;
  readonly value: number;
  readonly unit: string;
}

/** One line of the table. */
export interface Line {
  readonly row: string;
  /** `a` to `b`. */
  readonly ratio: number;
  /** null: for information. */
  readonly target: { readonly atLeast: number } | { readonly atMost: number } | null;
  readonly a: Figure;
  readonly b: Figure;
  /** What else was seen: where the CPU went, and how large things were. */
  readonly notes: readonly string[];
}

export interface Row {
  /** What it is called on the command line. */
  readonly name: string;
  run(bench: Bench): Promise<readonly Line[]>;
}
