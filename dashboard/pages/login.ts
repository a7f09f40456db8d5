import { parametersOf } from '../../http/contract/parameters.ts';
import type { ApiRequest, Reply } from '../../http/contract/route.ts';
import { loginCookie, noLoginCookie, redirectAfterPost } from '../answers.ts';
import { alert, field } from '../components.ts';
import { flashMessage } from '../flash-message.ts';
import { html } from '../html.ts';
import { showBare } from '../layout.ts';
import { formOf, LONGEST_NEXT, type OpenRoute, type PageRoute } from '../routes.ts';

export interface LoginDeps {
  /** Seconds until this name or this visitor may try again; null: now. */
  readonly tooMany: (name: string, request: ApiRequest) => Promise<number | null>;
  /** Begins a login. @returns its token; null when name and password do not match a user */
  readonly logIn: (name: string, password: string, request: ApiRequest) => Promise<string | null>;
  readonly logOut: (token: string) => Promise<void>;
}

interface Shown {
  readonly next: string;
  readonly name?: string;
  readonly error?: { readonly message: string; readonly code: string };
  readonly flash?: string | null;
  readonly status?: number;
  readonly retryAfter?: number;
}

export const loginPages = (deps: LoginDeps): OpenRoute[] => [
  {
    method: 'GET',
    path: '/dashboard/login',
    handle: ({ query }) => {
      const given = parametersOf(query);
      return loginPage({ next: ownPath(given.get('next')), flash: flashMessage(given.get('said')) });
    },
  },
  { method: 'POST', path: '/dashboard/login', handle: (request) => logIn(deps, request) },
];

export const logoutAction = ({ logOut }: LoginDeps): PageRoute => ({
  method: 'POST',
  path: '/dashboard/logout',
  beforeAll: true,
  endsLogins: true,
  handle: async ({ token }) => {
    await logOut(token);
    return redirectAfterPost('/dashboard/login', 'logged-out', noLoginCookie);
  },
});

const loginPage = ({ next, name = '', error, flash, status = 200, retryAfter }: Shown): Reply =>
  showBare(
    'Log in',
    html`${error && alert(error)}${flash && html`<p class="said" role="status">${flash}</p>`}
    <form method="post" action="/dashboard/login">
      <input type="hidden" name="next" value="${next}">
      ${field('User name', 'name', { value: name, required: true, autocomplete: 'username' })}
      ${field('Password', 'password', { type: 'password', required: true, autocomplete: 'current-password' })}
      <button>Log in</button>
    </form>
    <p><small>No login yet? Whoever runs this service makes one with
      <code>doorplate user create</code>. The dashboard needs https, or a browser on the same machine.</small></p>`,
    status,
    retryAfter,
  );

/** A longer name is no user's, however it is composed: it is cut, because a form's whole takes milliseconds to hash and to show. */
const LONGEST_NAME = 801;

const logIn = async ({ tooMany, logIn }: LoginDeps, request: ApiRequest): Promise<Reply> => {
  const form = formOf(request);
  const name = (form.get('name') ?? '').slice(0, LONGEST_NAME).toWellFormed();
  const next = ownPath(form.get('next'));
  const wait = await tooMany(name, request);
  if (wait !== null) {
    const message = `Too many attempts. Wait ${Math.ceil(wait / 60)} min, then try again.`;
    return loginPage({ next, name, error: { message, code: 'login_limit' }, status: 429, retryAfter: wait });
  }
  const token = await logIn(name, form.get('password') ?? '', request);
  if (token === null) {
    const message = 'User name or password are wrong.';
    return loginPage({ next, name, error: { message, code: 'login_refused' }, status: 401 });
  }
  return redirectAfterPost(next, undefined, loginCookie(token));
};

/** Returns the path of a dashboard page, and the start page for any other target of a link. */
const ownPath = (wanted: string | null): string =>
  wanted !== null && wanted.length <= LONGEST_NEXT && OWN_PATH.test(wanted) ? wanted : '/dashboard';

/** Encodes the query by RFC 3986, because it becomes a header, which allows only ASCII. */
const OWN_PATH = /^\/dashboard(\/[\w/-]*)?(\?[\w.~!$&'()*+,;=:@/?%-]*)?$/;
