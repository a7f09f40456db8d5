import type { Line } from './bench.ts';

/** The median; of an even number the mean of the two in the middle. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
};

/** The percentile of this share; sorts the values in place. */
export const percentile = (values: Float64Array, share: number): number => {
  values.sort();
  return values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;
};

/** Two measurements in alternation, so that other load of the machine meets both. */
export interface Alternated<A, B> {
  readonly a: readonly A[];
  readonly b: readonly B[];
}

export const alternate = async <A, B>(
  rounds: number,
  measureA: (round: number) => Promise<A>,
  measureB: (round: number) => Promise<B>,
): Promise<Alternated<A, B>> => {
  const a: A[] = [];
  const b: B[] = [];
  for (let round = 0; round < rounds; round += 1) {
    a.push(await measureA(round));
    b.push(await measureB(round));
  }
  return { a, b };
};

/** What a figure is of, and its value in each round. */
interface Rounds {
  readonly of: string;
  readonly values: readonly number[];
}

/** Returns the ratio of a line and its two figures, all by their medians. */
export const compared = (a: Rounds, b: Rounds, unit: string): Pick<Line, 'ratio' | 'a' | 'b'> => ({
  ratio: medianRatio(a.values, b.values),
  a: { of: a.of, value: median(a.values), unit },
  b: { of: b.of, value: median(b.values), unit },
});

/** The median over the rounds of `a` to `b`. */
export const medianRatio = (a: readonly number[], b: readonly number[]): number =>
  median(a.map((value, round) => value / (b[round] ?? Number.NaN)));
