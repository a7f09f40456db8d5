import { dictionary } from '@zxcvbn-ts/language-common';
import { composed } from '../domain/kernel/text.ts';

/** The service's own name, which whoever tries passwords on it tries first. */
const PRODUCT = 'doorplate';
const COMMON = new Set<string>((dictionary['passwords-common'] ?? []).map(String));

export type PasswordWeakness = 'common' | 'repeated' | 'name';

const isLetter = (character: string): boolean => /\p{L}/u.test(character);

/** Leaves out the digits and signs around the letters: `password1234!` is `password`. */
const core = (text: string): string => {
  const characters = [...text];
  return characters.slice(characters.findIndex(isLetter), characters.findLastIndex(isLetter) + 1).join('');
};

/** The shortest text that the whole is repetitions of; the whole itself, if it is none. */
const repeatedUnit = (text: string): string => text.slice(0, `${text}${text}`.indexOf(text, 1));

/**
 * Tells why a new password is easily guessed: it is among the commonly used ones (with digits or signs around it, or
 * repeated, too), one character repeated, or holds the product's or the user's name.
 * @returns null where it is none of these
 */
export const weaknessOf = (password: string, userName: string): PasswordWeakness | null => {
  const text = composed(password).toLowerCase();
  const unit = repeatedUnit(text);
  if ([...unit].length === 1) return 'repeated';
  const names = [PRODUCT, composed(userName).toLowerCase()];
  // A name of two letters is in too many words.
  if (names.some((name) => name.length > 2 && text.includes(name))) return 'name';
  return [text, unit, core(text), repeatedUnit(core(text))].some((one) => COMMON.has(one)) ? 'common' : null;
};
