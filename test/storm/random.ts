/** A sequence of numbers that a seed decides, so that a storm can be repeated. */
export interface Random {
  /** A number from 0 (included) to 1 (excluded). */
  next(): number;
  /** Returns true with this probability. */
  chance(probability: number): boolean;
  /** One of the items. @throws RangeError when there is none */
  pick<T>(items: readonly T[]): T;
  shuffle<T>(items: readonly T[]): T[];
}

/** Creates the generator mulberry32 with a 32-bit seed. */
export const createRandom = (seed: number): Random => {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const pick = <T>(items: readonly T[]): T => {
    if (items.length === 0) throw new RangeError('nothing to pick from');
    return items[Math.floor(next() * items.length)] as T;
  };
  return {
    next,
    chance: (probability) => next() < probability,
    pick,
    shuffle: (items) => {
      const left = [...items];
      const shuffled = [];
      while (left.length > 0) shuffled.push(...left.splice(Math.floor(next() * left.length), 1));
      return shuffled;
    },
  };
};
