import type { Reply } from '../../../http/contract/route.ts';
import { RATES } from '../../../processors/partners/login-limits.ts';
import type { ListedLogin } from '../../../processors/partners/logins.ts';
import { loginCookie, noLoginCookie, redirectAfterPost } from '../answers.ts';
import { commandOf, errorAnswer, type PageContext, type Refused, textOf } from '../api.ts';
import * as ui from '../components.ts';
import { type Content, html } from '../components.ts';
import { show, showBare } from '../layout.ts';
import { newPasswordFields, problemWithPassword, tooManyAttempts } from '../passwords.ts';
import { get, type PageRoute, post, SECOND_FACTOR_PATH } from '../routes.ts';
import { browserIn, type LoginServices } from '../services.ts';

const PATH = '/dashboard/account';

export const accountPages = (services: LoginServices): PageRoute[] => [
  get(PATH, (page) => account(services, page)),
  post(`${PATH}/time-zone`, 'read-only', (page) => setZone(services, page)),
  post(
    `${PATH}/end-login`,
    'read-only',
    async (page) => {
      await services.logins.endOne(page.user.user_id, textOf(page, 'login_id'));
      return redirectAfterPost(PATH, 'login-ended');
    },
    { endsLogins: true },
  ),
  post(
    `${PATH}/end-other-logins`,
    'read-only',
    async ({ user, token }) => {
      await services.logins.endOthers(user.user_id, token);
      return redirectAfterPost(PATH, 'logins-ended');
    },
    { endsLogins: true },
  ),
  get('/dashboard/password', (page) => passwordPage(page), { beforeAll: true }),
  post('/dashboard/password', 'read-only', (page) => changePassword(services, page), {
    beforeAll: true,
    endsLogins: true,
  }),
  post(
    '/dashboard/logout-everywhere',
    'read-only',
    async ({ user }) => {
      await services.logins.endAll(user.user_id);
      return redirectAfterPost('/dashboard/login', 'logged-out', noLoginCookie);
    },
    { beforeSecondFactor: true, endsLogins: true },
  ),
];

/** Zones that ICU still lists under the name that they had before, as it has to: its names never change. */
const RENAMED: Readonly<Record<string, string>> = {
  'Africa/Asmera': 'Africa/Asmara',
  'America/Buenos_Aires': 'America/Argentina/Buenos_Aires',
  'America/Catamarca': 'America/Argentina/Catamarca',
  'America/Coral_Harbour': 'America/Atikokan',
  'America/Cordoba': 'America/Argentina/Cordoba',
  'America/Godthab': 'America/Nuuk',
  'America/Indianapolis': 'America/Indiana/Indianapolis',
  'America/Jujuy': 'America/Argentina/Jujuy',
  'America/Louisville': 'America/Kentucky/Louisville',
  'America/Mendoza': 'America/Argentina/Mendoza',
  'Asia/Calcutta': 'Asia/Kolkata',
  'Asia/Katmandu': 'Asia/Kathmandu',
  'Asia/Rangoon': 'Asia/Yangon',
  'Asia/Saigon': 'Asia/Ho_Chi_Minh',
  'Atlantic/Faeroe': 'Atlantic/Faroe',
  'Europe/Kiev': 'Europe/Kyiv',
  'Pacific/Enderbury': 'Pacific/Kanton',
  'Pacific/Ponape': 'Pacific/Pohnpei',
  'Pacific/Truk': 'Pacific/Chuuk',
};
const todaysName = (zone: string): string => RENAMED[zone] ?? zone;

/** Zones by the names that they have today. ICU lists no `UTC`. */
const ZONES: readonly string[] = [
  ...new Set(['UTC', ...Intl.supportedValuesOf('timeZone').map(todaysName).toSorted()]),
];

/** Returns the listed name of a zone that is named in any way that ICU knows; null: there is none. */
function zoneNamed(name: string): string | null {
  try {
    const zone = todaysName(new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone);
    return ZONES.includes(zone) ? zone : null;
  } catch {
    return null;
  }
}

async function account(
  { logins: all, factors }: LoginServices,
  page: PageContext,
  refused: Refused = null,
): Promise<Reply> {
  const { user, token } = page;
  const [logins, hasSecondFactor] = await Promise.all([
    all.list(user.user_id, token),
    factors.isSetUp(user.user_id),
  ]);
  return show(page, {
    title: 'Your account',
    section: 'Settings',
    tab: PATH,
    refused,
    content: html`${ui.facts([
      ['User', user.name],
      ['Role', user.role],
      ['Account', user.partner_name],
      ['Account id', html`<code>${user.partner_id}</code>`],
    ])}
    <div class="columns">
    ${ui.panel(
      'Password',
      html`<p>A new password ends your other logins.</p>
      <p><a class="button" href="/dashboard/password">Change the password</a></p>`,
    )}
    ${ui.panel(
      'Second factor',
      html`<p>${hasSecondFactor ? ui.badge('on', 'good') : ui.badge('off', 'off')}
      ${hasSecondFactor ? 'Each login asks for a code of your app.' : 'A code of an app on your phone, at each login, protects your account if somebody learns your password.'}</p>
      <p><a class="button${hasSecondFactor && ' quiet'}" href="${SECOND_FACTOR_PATH}">${hasSecondFactor ? 'Manage the second factor' : 'Set up a second factor'}</a></p>`,
    )}
    ${ui.panel(
      'Time zone',
      ui.form(
        page,
        `${PATH}/time-zone`,
        html`<div class="field"><label for="time_zone">Times are shown in</label>
          <input id="time_zone" name="time_zone" list="zones" value="${todaysName(user.time_zone)}" required autocomplete="off" aria-describedby="time_zone-hint">
          <small id="time_zone-hint">Search by city or region.</small>
          <datalist id="zones">${ZONES.map((zone) => html`<option value="${zone}">`)}</datalist></div>
          <button class="quiet">Save the time zone</button>`,
      ),
    )}
    </div>
    ${loginList(page, logins)}`,
  });
}

function loginList(page: PageContext, logins: readonly ListedLogin[]): Content {
  const endForm = ({ login_id, is_this }: ListedLogin): Content =>
    is_this
      ? ui.badge('this browser', 'good')
      : ui.form(
          page,
          `${PATH}/end-login`,
          html`<input type="hidden" name="login_id" value="${login_id}"><button class="quiet">End</button>`,
        );
  return html`${ui.table(
    ui.counted(logins.length, 'login'),
    ['Browser', 'Last used', 'Began', 'End'],
    logins.map((login) => [
      login.browser ?? 'Unknown browser',
      page.ago(login.used_at),
      page.time(login.began_at),
      endForm(login),
    ]),
  )}
  <p class="soft">A login ends after 12 hours without use, and after 7 days in any case.</p>
  <div class="actions">
  ${logins.length > 1 && ui.form(page, `${PATH}/end-other-logins`, html`<button class="quiet">End all other logins</button>`)}
  ${ui.form(page, '/dashboard/logout-everywhere', html`<button class="quiet">Log out everywhere</button>`)}</div>`;
}

async function setZone(services: LoginServices, page: PageContext): Promise<Reply> {
  const zone = zoneNamed(textOf(page, 'time_zone'));
  if (zone === null) {
    const message = 'There is no such time zone. Choose one of the list.';
    return account(services, page, errorAnswer(400, 'invalid_time_zone', message));
  }
  await services.setTimeZone(page.user.user_id, zone);
  return redirectAfterPost(PATH, 'time-zone-set');
}

function passwordPage(page: PageContext, error?: string, wait: number | null = null): Reply {
  const { is_first, name } = page.user;
  return showBare(
    is_first ? 'Choose your password' : 'Change the password',
    html`${error && ui.alert({ message: error, code: 'password_refused' })}
    ${is_first && html`<p>The password that you have was made by somebody else. Choose one that nobody else knows.</p>`}
    ${ui.form(
      page,
      '/dashboard/password',
      html`<input type="text" name="name" value="${name}" autocomplete="username" readonly hidden>
      ${ui.field('Password until now', 'current', { type: 'password', required: true, autocomplete: 'current-password' })}
      ${newPasswordFields('New password')}
      <button>Change the password</button> ${!is_first && html`<a class="button quiet" href="${PATH}">Cancel</a>`}`,
    )}
    ${is_first && ui.form(page, '/dashboard/logout', html`<button class="quiet">Log out</button>`)}`,
    wait !== null ? 429 : error === undefined ? 200 : 400,
    wait ?? undefined,
  );
}

async function changePassword(services: LoginServices, page: PageContext): Promise<Reply> {
  const { form: given, user, request, token } = page;
  const { limits, networkOf, dashboardLogins } = services;
  const waitForForm = await limits.take(RATES.passwordFormsOfUserFrom(user.user_id, networkOf(request)));
  if (waitForForm !== null) {
    return passwordPage(
      page,
      `Too many forms in a minute. Wait ${waitForForm} s, then try again.`,
      waitForForm,
    );
  }
  const wrong = problemWithPassword(given, user.name);
  if (wrong !== null) return passwordPage(page, wrong);
  const [current, password] = [given.get('current') ?? '', given.get('password') ?? ''];
  const changed = await dashboardLogins.changePassword(
    user.user_id,
    { current, password, token, browser: browserIn(request) },
    commandOf(page),
  );
  if (changed === 'wrong') return passwordPage(page, 'The password until now is wrong.');
  if ('retryAfter' in changed) {
    const { retryAfter } = changed;
    return passwordPage(page, tooManyAttempts(retryAfter), retryAfter);
  }
  // A first login goes on to Home, which has the next steps; who came from the account returns there.
  return redirectAfterPost(
    user.is_first ? '/dashboard' : PATH,
    'password-changed',
    loginCookie(changed.token),
  );
}
