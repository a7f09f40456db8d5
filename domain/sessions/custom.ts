import type { CustomParameters } from './events.ts';

const MAX_LABELS = 32;
const MAX_BYTES = 2_048;
const MAX_VALUE_LENGTH = 512;
/** A letter, then letters, digits, `_`, `.`, `-`; ASCII only (contract, Pixel 2). It excludes `__proto__`. */
const NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;
const RESERVED: readonly string[] = ['constructor', 'prototype'];

/** Validates the labels of a snippet (contract, Pixel 2); null if they break a rule. */
export const parseCustom = (value: unknown): CustomParameters | null => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const labels = Object.entries(value);
  if (labels.length > MAX_LABELS || !labels.every(isLabel)) return null;
  return Buffer.byteLength(JSON.stringify(value)) <= MAX_BYTES ? (value as CustomParameters) : null;
};

const isLabel = ([name, value]: [string, unknown]): boolean =>
  NAME.test(name) && !RESERVED.includes(name) && isValue(value);

const isValue = (value: unknown): boolean => {
  switch (typeof value) {
    case 'string':
      return !isTooLong(value) && !value.includes('\u0000') && value.isWellFormed();
    case 'number':
      // JSON's 1e999 is parsed as Infinity, which JSON cannot represent.
      return Number.isFinite(value);
    case 'boolean':
      return true;
    default:
      return value === null;
  }
};

/** Counts code points, only if `length`, which counts UTF-16 units, is over the limit. */
const isTooLong = (text: string): boolean =>
  text.length > MAX_VALUE_LENGTH && [...text].length > MAX_VALUE_LENGTH;
