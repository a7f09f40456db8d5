import type { ApiRequest, Reply } from '../../../http/contract/route.ts';
import { deviceIn, loginAndDeviceCookies, noLoginCookie, redirectAfterPost } from '../answers.ts';
import { alert, field, html } from '../components.ts';
import { flashMessage, showBare } from '../layout.ts';
import { formOf, LONGEST_NEXT, type OpenRoute, type PageRoute } from '../routes.ts';

export interface LoginDeps {
  /** Begins a login. @returns its token and the device's; or the seconds until this name or visitor may try again */
  readonly logIn: (
    attempt: { readonly name: string; readonly password: string; readonly device: string | null },
    request: ApiRequest,
  ) => Promise<
    { readonly token: string; readonly device: string } | { readonly retryAfter: number } | 'wrong'
  >;
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
      const given = new URLSearchParams(query);
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

async function logIn({ logIn }: LoginDeps, request: ApiRequest): Promise<Reply> {
  const form = formOf(request);
  const name = (form.get('name') ?? '').slice(0, LONGEST_NAME).toWellFormed();
  const next = ownPath(form.get('next'));
  const device = deviceIn(request.header('cookie'));
  const outcome = await logIn({ name, password: form.get('password') ?? '', device }, request);
  if (outcome === 'wrong') {
    const message = 'User name or password are wrong.';
    return loginPage({ next, name, error: { message, code: 'login_refused' }, status: 401 });
  }
  if ('retryAfter' in outcome) {
    const { retryAfter } = outcome;
    const message = `Too many attempts. Wait ${Math.ceil(retryAfter / 60)} min, then try again.`;
    return loginPage({ next, name, error: { message, code: 'login_limit' }, status: 429, retryAfter });
  }
  return redirectAfterPost(next, undefined, loginAndDeviceCookies(outcome.token, outcome.device));
}

/** Returns the path of a dashboard page, and the start page for any other target of a link. */
const ownPath = (wanted: string | null): string =>
  wanted !== null && wanted.length <= LONGEST_NEXT && OWN_PATH.test(wanted) ? wanted : '/dashboard';

/** Encodes the query by RFC 3986, because it becomes a header, which allows only ASCII. */
const OWN_PATH = /^\/dashboard(\/[\w/-]*)?(\?[\w.~!$&'()*+,;=:@/?%-]*)?$/;
