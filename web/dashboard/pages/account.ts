import type { Reply } from '../../../http/contract/route.ts';
import { loginCookie, noLoginCookie, redirectAfterPost } from '../answers.ts';
import type { Visit } from '../api.ts';
import { alert, count, facts, field, form, html } from '../components.ts';
import { show, showBare } from '../layout.ts';
import type { PageRoute } from '../routes.ts';

export interface AccountDeps {
  /** Counts a form for a new password from the visitor's network. @returns seconds until the next; null: this one counts */
  readonly admitForm: (visit: Visit) => Promise<number | null>;
  /** Seconds until this user may try passwords again; null: now. */
  readonly tooMany: (visit: Visit) => Promise<number | null>;
  /** Ends every login of the user and begins one. @returns its token; null: `current` is not the password */
  readonly changePassword: (visit: Visit, current: string, password: string) => Promise<string | null>;
  /** Why a new password is weak; null: it is not. */
  readonly weakness: (password: string, userName: string) => 'common' | 'repeated' | 'name' | null;
  readonly countLogins: (userId: string) => Promise<number>;
  readonly endLogins: (userId: string) => Promise<void>;
}

const MIN_PASSWORD_LENGTH = 12;
const MAX_PASSWORD_LENGTH = 200;

export const accountPages = (deps: AccountDeps): PageRoute[] => [
  { method: 'GET', path: '/dashboard/account', handle: (visit) => account(deps, visit) },
  { method: 'GET', path: '/dashboard/password', beforeAll: true, handle: (visit) => passwordPage(visit) },
  {
    method: 'POST',
    path: '/dashboard/password',
    beforeAll: true,
    endsLogins: true,
    handle: (visit) => changePassword(deps, visit),
  },
  {
    method: 'POST',
    path: '/dashboard/logout-everywhere',
    endsLogins: true,
    handle: async ({ user }) => {
      await deps.endLogins(user.user_id);
      return redirectAfterPost('/dashboard/login', 'logged-out', noLoginCookie);
    },
  },
];

async function account({ countLogins }: AccountDeps, visit: Visit): Promise<Reply> {
  const { user } = visit;
  const logins = await countLogins(user.user_id);
  return show(visit, {
    title: 'Your account',
    section: 'Settings',
    content: html`${facts([
      ['User', user.name],
      ['Partner', user.partner_name],
      ['Partner id', html`<code>${user.partner_id}</code>`],
      ['Logged in', `${count(logins)} ${logins === 1 ? 'time: here' : 'times, this one included'}`],
    ])}
    <p><a class="button" href="/dashboard/password">Change the password</a></p>
    <section><h2>Log out everywhere</h2>
      <p>Ends all your logins, on every device, this one too.</p>
      ${form(visit, '/dashboard/logout-everywhere', html`<button class="danger">Log out everywhere</button>`)}
    </section>`,
  });
}

function passwordPage(visit: Visit, error?: string, wait: number | null = null): Reply {
  const { is_first, name } = visit.user;
  return showBare(
    is_first ? 'Choose your password' : 'Change the password',
    html`${error && alert({ message: error, code: 'password_refused' })}
    ${is_first && html`<p>The password that you have was made by an operator. Choose one that nobody else knows.</p>`}
    ${form(
      visit,
      '/dashboard/password',
      html`<input type="text" name="name" value="${name}" autocomplete="username" readonly hidden>
      ${field('Password until now', 'current', { type: 'password', required: true, autocomplete: 'current-password' })}
      ${field('New password', 'password', {
        type: 'password',
        required: true,
        autocomplete: 'new-password',
        hint: `At least ${MIN_PASSWORD_LENGTH} characters. Several words are easier to remember than signs.`,
      })}
      ${field('New password again', 'again', { type: 'password', required: true, autocomplete: 'new-password' })}
      <button>Change the password</button> ${!is_first && html`<a class="button quiet" href="/dashboard/account">Cancel</a>`}`,
    )}
    ${is_first && form(visit, '/dashboard/logout', html`<button class="quiet">Log out</button>`)}`,
    wait !== null ? 429 : error === undefined ? 200 : 400,
    wait ?? undefined,
  );
}

async function changePassword(deps: AccountDeps, visit: Visit): Promise<Reply> {
  const waitForForm = await deps.admitForm(visit);
  if (waitForForm !== null) {
    return passwordPage(
      visit,
      `Too many forms in a minute. Wait ${waitForForm} s, then try again.`,
      waitForForm,
    );
  }
  const { form: given, user } = visit;
  const current = given.get('current') ?? '';
  const password = given.get('password') ?? '';
  const wrong =
    wrongWith(password, given.get('again') ?? '', current) ?? weaknessIn(password, user.name, deps);
  if (wrong !== null) return passwordPage(visit, wrong);
  const wait = await deps.tooMany(visit);
  if (wait !== null) {
    return passwordPage(visit, `Too many attempts. Wait ${Math.ceil(wait / 60)} min, then try again.`, wait);
  }
  const token = await deps.changePassword(visit, current, password);
  if (token === null) return passwordPage(visit, 'The password until now is wrong.');
  return redirectAfterPost('/dashboard/account', 'password-changed', loginCookie(token));
}

const WEAKNESSES = {
  common: 'The new password is one of those that many people use, and that is tried first.',
  repeated: 'The new password repeats a few characters.',
  name: 'The new password contains your user name or the name of this service.',
} as const;

/** Call it only with a password of allowed length: its time grows with the square of the length. */
function weaknessIn(password: string, userName: string, deps: AccountDeps): string | null {
  const weakness = deps.weakness(password, userName);
  return weakness && WEAKNESSES[weakness];
}

function wrongWith(password: string, again: string, current: string): string | null {
  const { length } = [...password];
  if (password !== again) return 'The two new passwords differ.';
  if (length < MIN_PASSWORD_LENGTH || length > MAX_PASSWORD_LENGTH)
    return `The new password must have ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters.`;
  if (password === current) return 'The new password is the one until now.';
  return null;
}
