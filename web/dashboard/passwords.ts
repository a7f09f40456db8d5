import { weaknessOf } from '../../platform/crypto/password-strength.ts';
import { field, type Html, html } from './components.ts';

/** What somebody is told who may try again after these seconds. */
export const tooManyAttempts = (wait: number): string =>
  `Too many attempts. Wait ${Math.ceil(wait / 60)} min, then try again.`;

const MIN_LENGTH = 12;
const MAX_LENGTH = 200;

/** The two fields for a password that a user chooses. */
export const newPasswordFields = (label: string): Html => html`${field(label, 'password', {
  type: 'password',
  required: true,
  autocomplete: 'new-password',
  hint: `At least ${MIN_LENGTH} characters. Several words are easier to remember than signs.`,
})}
${field(`${label} again`, 'again', { type: 'password', required: true, autocomplete: 'new-password' })}`;

const WEAKNESSES = {
  common: 'The new password is one of those that many people use, and that is tried first.',
  repeated: 'The new password repeats a few characters.',
  name: 'The new password contains your user name or the name of this service.',
} as const;

/** What is wrong with the password in a form with `newPasswordFields`; null: nothing. */
export function problemWithPassword(form: URLSearchParams, userName: string): string | null {
  const password = form.get('password') ?? '';
  const { length } = [...password];
  if (password !== (form.get('again') ?? '')) return 'The two new passwords differ.';
  if (length < MIN_LENGTH || length > MAX_LENGTH)
    return `The new password must have ${MIN_LENGTH} to ${MAX_LENGTH} characters.`;
  if (password === form.get('current')) return 'The new password is the one until now.';
  const weakness = weaknessOf(password, userName);
  return weakness && WEAKNESSES[weakness];
}
