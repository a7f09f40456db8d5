import { InvalidArgumentError } from 'commander';

/** How null is spelled: commander turns a parsed null into an empty text. */
export const NO_CAP = 'none';

const LARGEST = 1_000_000_000;

/** Reads a whole number from `least` to 10^9. @throws InvalidArgumentError */
export const wholeFrom =
  (least: number) =>
  (text: string): number => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= LARGEST) return value;
    throw new InvalidArgumentError(`not a whole number from ${least} to ${LARGEST}`);
  };

/** Reads a whole number or `none`. @throws InvalidArgumentError */
export const allowance = (text: string): number | typeof NO_CAP =>
  text === NO_CAP ? NO_CAP : wholeFrom(0)(text);

/** Leaves out what no option names. */
export const given = <T extends object>(values: { [K in keyof T]: T[K] | undefined }): Partial<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
