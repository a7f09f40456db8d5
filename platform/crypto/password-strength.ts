import { createRequire } from 'node:module';
import { composed } from '../../domain/kernel/text.ts';

/** The product's name, an obvious guess. */
const PRODUCT = 'doorplate';

let common: ReadonlySet<string> | null = null;
/** Unpacked when the first password is changed: the dictionaries take several megabytes. */
function isCommon(text: string): boolean {
  const require = createRequire(import.meta.url);
  const { dictionary } = require('@zxcvbn-ts/language-common') as typeof import('@zxcvbn-ts/language-common');
  common ??= new Set(dictionary['passwords-common']?.map(String));
  return common.has(text);
}

const MIN_DISTINCT_CHARACTERS = 5;

export type PasswordWeakness = 'common' | 'repeated' | 'name';

const isLetter = (character: string): boolean => /\p{L}/u.test(character);

/** Strips digits and signs around the letters: `password1234!` becomes `password`. */
function core(text: string): string {
  const characters = [...text];
  return characters.slice(characters.findIndex(isLetter), characters.findLastIndex(isLetter) + 1).join('');
}

/** Returns the shortest text whose repetition is the whole, or the whole. */
const repeatedUnit = (text: string): string => text.slice(0, `${text}${text}`.indexOf(text, 1));

/** Removes everything but letters and digits: `anna.schmidt` and `Anna Schmidt` are the same name. */
const plain = (text: string): string => text.replace(/[^\p{L}\p{N}]/gu, '');

/** Returns the names of a user: the whole, and what stands before the `@` of an address. */
const namesOf = (user: string): string[] => [user, user.split('@', 1)[0] ?? ''].map(plain);

/**
 * Returns whether a password is made of a name. Many words contain a name of two letters, which therefore has to be all
 * of the password but digits and signs.
 */
const isMadeOf = (text: string, name: string): boolean =>
  name.length > 2 ? plain(text).includes(name) : name !== '' && repeatedUnit(plain(core(text))) === name;

/**
 * Returns why a password is easy to guess: commonly used (also repeated, or with digits or signs around it), a repetition of
 * few characters, or made of the product's or the user's name.
 * @returns null if none applies
 */
export function weaknessOf(password: string, userName: string): PasswordWeakness | null {
  const text = composed(password).toLowerCase();
  const units = [text, core(text), plain(text)].map(repeatedUnit);
  const names = [PRODUCT, ...namesOf(composed(userName).toLowerCase())];
  if (names.some((name) => isMadeOf(text, name))) return 'name';
  if (new Set(text).size < MIN_DISTINCT_CHARACTERS || units.some((unit) => [...unit].length === 1))
    return 'repeated';
  return [text, core(text), ...units, ...units.map(core)].some(isCommon) ? 'common' : null;
}
