import { dictionary } from '@zxcvbn-ts/language-common';
import { composed } from '../domain/kernel/text.ts';

/** The product's name, an obvious guess. */
const PRODUCT = 'doorplate';
const COMMON = new Set<string>((dictionary['passwords-common'] ?? []).map(String));

export type PasswordWeakness = 'common' | 'repeated' | 'name';

const isLetter = (character: string): boolean => /\p{L}/u.test(character);

/** Strips digits and signs around the letters: `password1234!` becomes `password`. */
const core = (text: string): string => {
  const characters = [...text];
  return characters.slice(characters.findIndex(isLetter), characters.findLastIndex(isLetter) + 1).join('');
};

/** Returns the shortest text whose repetition is the whole, or the whole. */
const repeatedUnit = (text: string): string => text.slice(0, `${text}${text}`.indexOf(text, 1));

/**
 * Returns why a password is easy to guess: commonly used (also repeated, or with digits or signs around it), one repeated
 * character, or containing the product's or the user's name.
 * @returns null if none applies
 */
export const weaknessOf = (password: string, userName: string): PasswordWeakness | null => {
  const text = composed(password).toLowerCase();
  const unit = repeatedUnit(text);
  if ([...unit].length === 1) return 'repeated';
  const names = [PRODUCT, composed(userName).toLowerCase()];
  // Many words contain a name of two letters.
  if (names.some((name) => name.length > 2 && text.includes(name))) return 'name';
  return [text, unit, core(text), repeatedUnit(core(text))].some((one) => COMMON.has(one)) ? 'common' : null;
};
