import type { CustomParameters } from './events.ts';

const MOST = 32;
const MOST_BYTES = 2_048;
const LONGEST_VALUE = 512;
/** A letter, then letters, digits, `_`, `.`, `-`; ASCII alone (decisions, Pixel). It rules out `__proto__`. */
const NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;
const RESERVED: readonly string[] = ['constructor', 'prototype'];

/** The labels of a snippet as they were sent (spec, CustomParameters); null where they break a rule. */
export const parseCustom = (value: unknown): CustomParameters | null => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const labels = Object.entries(value);
  if (labels.length > MOST || !labels.every(isLabel)) return null;
  return Buffer.byteLength(JSON.stringify(value)) <= MOST_BYTES ? (value as CustomParameters) : null;
};

const isLabel = ([name, value]: [string, unknown]): boolean =>
  NAME.test(name) && !RESERVED.includes(name) && isValue(value);

const isValue = (value: unknown): boolean => {
  switch (typeof value) {
    case 'string':
      return !isTooLong(value) && !value.includes('\u0000') && value.isWellFormed();
    case 'number':
      // JSON's 1e999 is read as Infinity, which no JSON can say.
      return Number.isFinite(value);
    case 'boolean':
      return true;
    default:
      return value === null;
  }
};

/** In code points, of which each is one or two of the units that `length` counts. */
const isTooLong = (text: string): boolean => text.length > LONGEST_VALUE && [...text].length > LONGEST_VALUE;
