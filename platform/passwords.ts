import { randomBytes, randomInt } from 'node:crypto';
import { hash, verify } from '@node-rs/argon2';

/** The same password however the keyboard composes its letters. */
const spelled = (password: string): string => password.normalize('NFKC');

/** argon2id as a PHC string, by OWASP's minimum, the library's defaults: 19 MiB, two passes, one lane. */
export const hashPassword = (password: string): Promise<string> => hash(spelled(password));

/** Of a password that nobody knows. */
let nobodys: Promise<string> | null = null;

/** Whether it is the password. `known` null: there is none, which takes as long to say. */
export const isPassword = async (password: string, known: string | null): Promise<boolean> => {
  nobodys ??= hashPassword(randomBytes(32).toString('hex'));
  const matches = await verify(known ?? (await nobodys), spelled(password));
  return matches && known !== null;
};

/** Nothing that is mistaken for another letter when it is read out. */
const LETTERS = 'abcdefghjkmnpqrstuvwxyz23456789';

/** A first password that is easily typed: four groups of five, 99 bits. */
export const newPassword = (): string => {
  const group = () => Array.from({ length: 5 }, () => LETTERS[randomInt(LETTERS.length)]).join('');
  return [group(), group(), group(), group()].join('-');
};
