import { timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { ApiRequest, PublicRoute, Reply, Route } from '../../http/contract/route.ts';
import { staticRoute } from '../../http/contract/static-route.ts';
import { RATES } from '../../processors/partners/login-limits.ts';
import { listOwners } from '../../queries/partners/team.ts';
import { csrfOf, deviceIn, redirectAfterPost, tokenIn } from './answers.ts';
import {
  type createApi,
  hasRole,
  type LoggedInUser,
  type PageContext,
  type PageReads,
  type Role,
} from './api.ts';
import { alert, form as formTag, html, proofField } from './components.ts';
import { showBare } from './layout.ts';
import { tooManyAttempts } from './passwords.ts';
import { scopeIn } from './scope.ts';
import type { LoginServices } from './services.ts';
import { timesIn } from './times.ts';

interface RouteOptions {
  /** Open to a user who must change a first password, or set up a second factor. */
  readonly beforeAll?: boolean;
  /** Open to a user who must set up a second factor, once the password is the user's own. */
  readonly beforeSecondFactor?: boolean;
  /** Asks for the password, or a code of the second factor: a lasting change of access, which a stolen login must not make. */
  readonly needsProof?: boolean;
  /** Exempt from the rate of forms: a stolen login that uses it up must not keep its owner from ending that login. */
  readonly endsLogins?: boolean;
}

type Handle = (page: PageContext) => Reply | Promise<Reply>;

/** A page or an action: a path and its response to a logged-in user with the role that it needs, or one that may do more. */
export interface PageRoute extends RouteOptions {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly needs: Role;
  readonly handle: Handle;
}

/** A page, which everybody sees unless it needs a role. */
export const get = (
  path: string,
  handle: Handle,
  options: RouteOptions & { readonly needs?: Role } = {},
): PageRoute => ({ method: 'GET', path, needs: 'read-only', handle, ...options });

/** An action. It needs `read-only` where everybody does it with what is their own. */
export const post = (path: string, needs: Role, handle: Handle, options: RouteOptions = {}): PageRoute => ({
  method: 'POST',
  path,
  needs,
  handle,
  ...options,
});

/** A route behind a login, with the role that it needs. */
export type GuardedRoute = PublicRoute & { readonly needs: Role };

/** A page or action without a login. */
export interface OpenRoute {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  handle(request: ApiRequest): Reply | Promise<Reply>;
}

export interface DashboardDeps
  extends ReturnType<typeof createApi>,
    Pick<LoginServices, 'logins' | 'dashboardLogins' | 'limits'> {
  readonly publicUrl: string;
  readonly reads: PageReads;
  readonly open: readonly OpenRoute[];
  readonly pages: readonly PageRoute[];
}

/** Bytes of the longest form, escaped: 50 origins of 267 characters, and a name and a reference of 200 characters. */
const FORM_LIMIT = 24_576;
const ASSET_SECONDS = 300;
const FONT_SECONDS = 30 * 86_400;
export const SECOND_FACTOR_PATH = '/dashboard/account/second-factor';

/** The dashboard's routes: its pages, its actions and its static files. */
export function dashboardRoutes(deps: DashboardDeps): Route[] {
  const contextOf = async (request: ApiRequest): Promise<PageContext | null> => {
    const token = tokenIn(request.header('cookie'));
    const user = token === null ? null : await deps.logins.find(token);
    if (token === null || user === null) return null;
    const query = new URLSearchParams(request.query);
    return {
      request,
      user,
      token,
      csrf: csrfOf(token),
      query,
      scope: scopeIn(query, request.receivedAt),
      ...timesIn(user.time_zone, request.receivedAt),
      form: formOf(request),
      api: deps.callAsUser(request, user),
      apiAs: (key) => deps.callAs(request, key),
      publicUrl: deps.publicUrl,
      reads: deps.reads,
    };
  };

  /** Where a user has to go before anything else; null: nowhere. */
  function firstOf({ user }: PageContext, { beforeAll = false, beforeSecondFactor = false }: PageRoute) {
    if (beforeAll) return null;
    if (user.is_first) return '/dashboard/password';
    return user.needs_second_factor && !beforeSecondFactor ? SECOND_FACTOR_PATH : null;
  }

  const guarded = (route: PageRoute): GuardedRoute => {
    const { method, path, needs, endsLogins = false, handle } = route;
    const registered = toRoute(method, path, async (request) => {
      const page = await contextOf(request);
      if (page === null) {
        if (hasKeptNoCookie(request)) return redirectAfterPost('/dashboard/login?said=no-cookie');
        return redirectAfterPost(`/dashboard/login${method === 'GET' ? nextOf(request, path) : ''}`);
      }
      if (method === 'POST' && !isOwnForm(page)) return refuseForeignForm();
      const first = firstOf(page, route);
      if (first !== null) return redirectAfterPost(first);
      const rateOf = method === 'POST' ? RATES.formsOfUser : RATES.pagesOfUser;
      const wait = endsLogins ? null : await deps.limits.take(rateOf(page.user.user_id));
      if (wait !== null) return method === 'POST' ? tooManyForms(wait) : tooManyPages(wait);
      if (!hasRole(page.user, needs)) {
        const owners = await listOwners(deps.reads.db, page.user.partner_id);
        return refuseRole(
          page.user,
          needs,
          owners.map(({ name }) => name),
        );
      }
      return (route.needsProof ? await askForProof(page, path) : null) ?? handle(page);
    });
    return { ...registered, needs };
  };

  /** The page that asks for the password before a form counts; null: the form has it. */
  async function askForProof(page: PageContext, path: string): Promise<Reply | null> {
    const given = page.form.get('proof') ?? '';
    const action = filled(path, page.request.params);
    if (given === '') return proofPage(page, action, null);
    const refused = await deps.dashboardLogins.prove(page.user.user_id, given);
    return refused === null ? null : proofPage(page, action, refused);
  }

  const open = ({ method, path, handle }: OpenRoute) =>
    toRoute(method, path, (request) =>
      method === 'POST' && !isFromHere(request) ? refuseForeignForm() : handle(request),
    );

  return [
    ...deps.open.map(open),
    ...deps.pages.map(guarded),
    ...withoutPage(deps.pages).map(toParent),
    ...redirects,
    ...assets(),
  ];
}

/** The addresses of actions alone, which a reload or a bookmark may ask for. */
const withoutPage = (pages: readonly PageRoute[]): readonly string[] => {
  const shown = new Set(pages.filter(({ method }) => method === 'GET').map(({ path }) => path));
  return pages.filter(({ method, path }) => method === 'POST' && !shown.has(path)).map(({ path }) => path);
};

/** Leads to the page above, which has the action's form. */
const toParent = (path: string): PublicRoute =>
  toRoute('GET', path, ({ params }) =>
    redirectAfterPost(filled(path.slice(0, path.lastIndexOf('/')), params)),
  );

/** A path with the parameters of a request in it. */
export const filled = (path: string, params: ApiRequest['params']): string =>
  path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));

/** The path without its slash, and any other path below. */
const redirects: readonly Route[] = [
  toRoute('GET', '/dashboard/', () => redirectAfterPost('/dashboard')),
  toRoute('GET', '/dashboard/*', () =>
    showBare('No such page', html`<p><a href="/dashboard">To Home</a></p>`, 404),
  ),
];

export const formOf = ({ body }: ApiRequest): URLSearchParams =>
  body instanceof URLSearchParams ? body : new URLSearchParams();

function toRoute(method: 'GET' | 'POST', path: string, handle: PublicRoute['handle']): PublicRoute {
  return {
    method,
    path,
    access: 'public',
    body: method === 'GET' ? 'none' : 'form',
    bodyLimit: FORM_LIMIT,
    handle,
    beforeSend: (_request, answer) => readable(answer),
    showRefusal: readable,
  };
}

/** Shows a refusal of the shared rules or a failure in words for a person. */
function readable(answer: Reply): Reply {
  if (answer.code === undefined) return answer;
  const { error } = JSON.parse(String(answer.body));
  const page = showBare(
    answer.status === 503 ? 'Not just now' : 'That did not work',
    html`<p role="alert">${error.message} <small>(${error.code})</small></p>
      <p>If you were changing something, look whether it was done before you repeat it.
      <a href="/dashboard">Back to the overview</a></p>`,
    answer.status,
  );
  return { ...page, headers: { ...page.headers, ...answer.headers }, code: answer.code };
}

/** Asks for the password before the form that was sent to `action` counts. `refused`: why the one that it had does not. */
function proofPage(page: PageContext, action: string, refused: 'wrong' | number | null): Reply {
  const error =
    refused === 'wrong'
      ? {
          code: 'wrong_proof',
          message: 'This is neither your password nor a code that counts. Nothing was changed.',
        }
      : {
          code: 'too_many_attempts',
          message: `${tooManyAttempts(refused ?? 0)} Nothing was changed.`,
        };
  const fields = [...page.form].filter(([name]) => name !== 'csrf' && name !== 'proof');
  return showBare(
    'Confirm with your password',
    html`${refused !== null && alert(error)}
    <p>This changes who has access, so it needs your password. If you have a second factor, a code does as well.</p>
    ${formTag(
      page,
      action,
      html`${fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
      ${proofField(page)}
      <button>Confirm</button> <a class="button quiet" href="/dashboard">Cancel</a>`,
    )}`,
    typeof refused === 'number' ? 429 : 400,
    typeof refused === 'number' ? refused : undefined,
  );
}

/** Browsers send the origin of a form; a client without it is no browser that another site could misuse. */
function isFromHere(request: ApiRequest): boolean {
  const origin = request.header('origin');
  const site = request.header('sec-fetch-site');
  if (site !== undefined && site !== 'same-origin') return false;
  if (origin === undefined) return true;
  const host = request.header('host');
  // As text: the URL parser takes quadratic time for long names, and this precedes the login.
  return origin === `https://${host}` || origin === `http://${host}`;
}

function isOwnForm({ request, form, csrf }: PageContext): boolean {
  const given = Buffer.from(form.get('csrf') ?? '');
  const wanted = Buffer.from(csrf);
  return isFromHere(request) && given.length === wanted.length && timingSafeEqual(given, wanted);
}

const refuseForeignForm = (): Reply =>
  showBare(
    'Please try again',
    html`<p role="alert">This form is not from a page of your login, so nothing was done.
      <a href="/dashboard">Back to the overview</a></p>`,
    403,
  );

/** Says which role is needed, and who can give it. */
function refuseRole({ role, is_suspended }: LoggedInUser, needed: Role, owners: readonly string[]): Reply {
  if (is_suspended) return refuseSuspended();
  return showBare(
    'Your role does not allow this',
    html`<p role="alert">This needs the role ${needed}; yours is ${role}. Nothing was done.</p>
      <p>${owners.length === 1 ? 'The owner of your team is' : 'The owners of your team are'} ${owners.join(', ')}:
      an owner can do it for you, or give you another role.</p>
      <p><a class="button" href="/dashboard">Back to Home</a></p>`,
    403,
  );
}

const refuseSuspended = (): Reply =>
  showBare(
    'This account is suspended',
    html`<p role="alert">While the account is suspended, everything can be read and nothing changed. Nothing was done.</p>
      <p>Ask the operator of this service: only the operator can resume the account.</p>
      <p><a class="button" href="/dashboard">Back to Home</a></p>`,
    403,
  );

const tooManyForms = (wait: number): Reply =>
  showBare(
    'Too many changes',
    html`<p role="alert">You have sent too many forms in a minute, so nothing was done. Wait ${wait} s, then try again.
      <a href="/dashboard">Back to the overview</a></p>`,
    429,
    wait,
  );

const tooManyPages = (wait: number): Reply =>
  showBare(
    'Too many pages',
    html`<p role="alert">You have asked for too many pages in a second. Wait ${wait} s, then reload this one.</p>`,
    429,
    wait,
  );

/** Whether a login has just led here, and the browser sends none of its cookies. */
function hasKeptNoCookie(request: ApiRequest): boolean {
  const cookies = request.header('cookie');
  const begun = new URLSearchParams(request.query).has('said', 'logged-in');
  return begun && tokenIn(cookies) === null && deviceIn(cookies) === null;
}

/** Longer than the path of any page, with what its lists ask for. */
export const LONGEST_NEXT = 2_048;

/** A login leads to the page that its user requested. */
function nextOf({ params, query }: ApiRequest, path: string): string {
  const wanted = filled(path, params);
  if (wanted === '/dashboard') return '';
  const next = query === '' ? wanted : `${wanted}?${query}`;
  return next.length > LONGEST_NEXT ? '' : `?next=${encodeURIComponent(next)}`;
}

const FONT = '@fontsource-variable/geist/files/geist-latin-wght-normal.woff2';

const assets = (): Route[] => [
  asset('style.css', 'text/css; charset=utf-8', ASSET_SECONDS),
  asset('app.js', 'text/javascript; charset=utf-8', ASSET_SECONDS),
  asset('ledger.js', 'text/javascript; charset=utf-8', ASSET_SECONDS),
  asset('geist.woff2', 'font/woff2', FONT_SECONDS, createRequire(import.meta.url).resolve(FONT)),
];

const asset = (name: string, type: string, seconds: number, file?: string): Route => ({
  ...staticRoute(`/dashboard/assets/${name}`, seconds, {
    body: readFileSync(file ?? new URL(`./browser/${name}`, import.meta.url)),
    headers: { 'content-type': type, 'x-content-type-options': 'nosniff' },
  }),
  showRefusal: readable,
});
