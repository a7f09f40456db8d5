import type { ApiRequest, Reply } from '../../../http/contract/route.ts';
import {
  afterFlash,
  deviceIn,
  flashIn,
  loginAndDeviceCookies,
  noLoginCookie,
  redirectAfterPost,
  tokenIn,
} from '../answers.ts';
import { alert, field, html } from '../components.ts';
import { flashMessage, showBare } from '../layout.ts';
import { tooManyAttempts } from '../passwords.ts';
import { formOf, LONGEST_NEXT, type OpenRoute, type PageRoute, post } from '../routes.ts';
import { type LoginServices, originOf } from '../services.ts';

interface Shown {
  readonly next: string;
  readonly name?: string;
  readonly error?: { readonly message: string; readonly code: string };
  readonly flash?: string | null;
  readonly status?: number;
  readonly retryAfter?: number;
}

const CODE_PATH = '/dashboard/login/code';

export const loginPages = (services: LoginServices): OpenRoute[] => [
  {
    method: 'GET',
    path: '/dashboard/login',
    handle: (request) => {
      const given = new URLSearchParams(request.query);
      // A browser without cookies is told by the address, unless that was opened by itself.
      const isLed = given.get('said') === 'no-cookie' && request.header('referer') !== undefined;
      const said = flashIn(request);
      const page = loginPage({
        next: ownPath(given.get('next')),
        flash: flashMessage(isLed ? 'no-cookie' : said),
      });
      return said === null ? page : afterFlash(page);
    },
  },
  { method: 'POST', path: '/dashboard/login', handle: (request) => logIn(services, request) },
  { method: 'GET', path: CODE_PATH, handle: () => redirectAfterPost('/dashboard/login') },
  { method: 'POST', path: CODE_PATH, handle: (request) => enterCode(services, request) },
];

export const logoutAction = ({ logins }: LoginServices): PageRoute =>
  post(
    '/dashboard/logout',
    'read-only',
    async ({ token }) => {
      await logins.end(token);
      return redirectAfterPost('/dashboard/login', 'logged-out', noLoginCookie);
    },
    { beforeAll: true, endsLogins: true },
  );

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
    <p><small>No login yet? An owner of your team invites you. The operator of this service creates the first user with
      <code>doorplate user create</code>. The dashboard needs https, or a browser on the same machine.</small></p>`,
    status,
    retryAfter,
  );

/** A longer name is no user's, however it is composed: it is cut, because a form's whole takes milliseconds to hash and to show. */
const LONGEST_NAME = 801;

async function logIn(services: LoginServices, request: ApiRequest): Promise<Reply> {
  const form = formOf(request);
  const name = (form.get('name') ?? '').slice(0, LONGEST_NAME).toWellFormed();
  const next = ownPath(form.get('next'));
  const attempt = { name, password: form.get('password') ?? '', ...originOf(services, request) };
  const outcome = await services.dashboardLogins.logIn(attempt);
  if (outcome === 'wrong') {
    const message = 'User name or password are wrong.';
    return loginPage({ next, name, error: { message, code: 'login_refused' }, status: 401 });
  }
  if ('retryAfter' in outcome) {
    const { retryAfter } = outcome;
    const message = tooManyAttempts(retryAfter);
    return loginPage({ next, name, error: { message, code: 'login_limit' }, status: 429, retryAfter });
  }
  if ('secondStep' in outcome) return codePage({ next, secondStep: outcome.secondStep });
  await endEarlier(services, request);
  return begun(request, next, outcome);
}

/** Ends the login that the new one takes the place of in the browser. */
export async function endEarlier({ logins }: LoginServices, request: ApiRequest): Promise<void> {
  const earlier = tokenIn(request.header('cookie'));
  if (earlier !== null) await logins.end(earlier);
}

/** Leads to the page that was wanted, which learns of the login where it is not known that the browser keeps cookies. */
function begun(
  request: ApiRequest,
  next: string,
  { token, device }: { token: string; device: string },
): Reply {
  const keepsCookies = deviceIn(request.header('cookie')) !== null;
  const path = keepsCookies ? next : `${next}${next.includes('?') ? '&' : '?'}said=logged-in`;
  return redirectAfterPost(path, undefined, loginAndDeviceCookies(token, device));
}

interface CodeShown extends Pick<Shown, 'next' | 'error' | 'status' | 'retryAfter'> {
  readonly secondStep: string;
}

const codePage = ({ next, secondStep, error, status = 200, retryAfter }: CodeShown): Reply =>
  showBare(
    'Enter your code',
    html`${error && alert(error)}
    <form method="post" action="${CODE_PATH}">
      <input type="hidden" name="next" value="${next}">
      <input type="hidden" name="second_step" value="${secondStep}">
      ${field('Code', 'code', {
        required: true,
        autocomplete: 'one-time-code',
        maxlength: 100,
        hint: 'The six digits that your app shows, or one of your recovery codes.',
      })}
      <button>Log in</button> <a class="button quiet" href="/dashboard/login">Start again</a>
    </form>
    <p><small>Neither phone nor recovery codes? An owner of your team, or the operator of this service, can turn the second factor
      off.</small></p>`,
    status,
    retryAfter,
  );

async function enterCode(services: LoginServices, request: ApiRequest): Promise<Reply> {
  const form = formOf(request);
  const next = ownPath(form.get('next'));
  const secondStep = form.get('second_step') ?? '';
  const attempt = { secondStep, code: form.get('code') ?? '', ...originOf(services, request) };
  const outcome = await services.dashboardLogins.enterCode(attempt);
  if (outcome === 'expired') {
    const message = 'Too much time has passed since your password. Log in again.';
    return loginPage({ next, error: { message, code: 'login_expired' }, status: 401 });
  }
  if (outcome === 'wrong') {
    const message = 'The code is wrong or was used before. Enter the one that your app shows now.';
    return codePage({ next, secondStep, error: { message, code: 'wrong_code' }, status: 401 });
  }
  if ('retryAfter' in outcome) {
    const { retryAfter } = outcome;
    const message = tooManyAttempts(retryAfter);
    return codePage({ next, secondStep, error: { message, code: 'login_limit' }, status: 429, retryAfter });
  }
  await endEarlier(services, request);
  return begun(request, next, outcome);
}

/** Returns the path of a dashboard page, and the start page for any other target of a link. */
const ownPath = (wanted: string | null): string =>
  wanted !== null && wanted.length <= LONGEST_NEXT && OWN_PATH.test(wanted) ? wanted : '/dashboard';

/** Encodes the query by RFC 3986, because it becomes a header, which allows only ASCII. */
const OWN_PATH = /^\/dashboard(\/[\w/-]*)?(\?[\w.~!$&'()*+,;=:@/?%-]*)?$/;
