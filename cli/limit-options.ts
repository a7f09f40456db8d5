import { InvalidArgumentError } from 'commander';
import { LARGEST_LIMIT } from '../domain/partners/partner.ts';

/** Spelling of null, because commander turns a parsed null into an empty text. */
export const NO_CAP = 'none';

/** Parses a whole number from `least` to 10^9. @throws InvalidArgumentError */
export const wholeFrom =
  (least: number) =>
  (text: string): number => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= LARGEST_LIMIT) return value;
    throw new InvalidArgumentError(`not a whole number from ${least} to ${LARGEST_LIMIT}`);
  };

/** Parses a whole number or `none`. @throws InvalidArgumentError */
export const allowance = (text: string): number | typeof NO_CAP =>
  text === NO_CAP ? NO_CAP : wholeFrom(0)(text);

/** Removes undefined options. */
export const given = <T extends object>(values: { [K in keyof T]: T[K] | undefined }): Partial<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
