import type { Reply } from '../../../http/contract/route.ts';
import { loginCookie, noLoginCookie, redirectAfterPost } from '../answers.ts';
import { type Refused, textOf, type Visit } from '../api.ts';
import {
  alert,
  badge,
  type Content,
  counted,
  facts,
  field,
  form,
  html,
  panel,
  select,
  table,
} from '../components.ts';
import { show, showBare } from '../layout.ts';
import { newPasswordFields, problemWithPassword, type WeaknessOf } from '../passwords.ts';
import { type PageRoute, SECOND_FACTOR_PATH } from '../routes.ts';

/** A login of the user's, on one browser. */
interface Login {
  readonly login_id: string;
  readonly began_at: string;
  readonly used_at: string;
  /** In words; null: not known. */
  readonly browser: string | null;
  readonly is_this: boolean;
}

export interface AccountDeps {
  /** Counts a form for a new password from the visitor's network. @returns seconds until the next; null: this one counts */
  readonly admitForm: (visit: Visit) => Promise<number | null>;
  /** Seconds until this user may try passwords again; null: now. */
  readonly tooMany: (visit: Visit) => Promise<number | null>;
  /** Ends every login of the user and begins one. @returns its token; null: `current` is not the password */
  readonly changePassword: (visit: Visit, current: string, password: string) => Promise<string | null>;
  readonly weakness: WeaknessOf;
  readonly hasSecondFactor: (userId: string) => Promise<boolean>;
  /** The last used first. */
  readonly listLogins: (visit: Visit) => Promise<readonly Login[]>;
  readonly endLogin: (visit: Visit, loginId: string) => Promise<void>;
  readonly endOtherLogins: (visit: Visit) => Promise<void>;
  readonly endLogins: (userId: string) => Promise<void>;
  readonly setTimeZone: (userId: string, timeZone: string) => Promise<void>;
}

const PATH = '/dashboard/account';

export const accountPages = (deps: AccountDeps): PageRoute[] => [
  { method: 'GET', path: PATH, handle: (visit) => account(deps, visit) },
  { method: 'POST', path: `${PATH}/time-zone`, needs: 'read-only', handle: (visit) => setZone(deps, visit) },
  {
    method: 'POST',
    path: `${PATH}/end-login`,
    needs: 'read-only',
    endsLogins: true,
    handle: async (visit) => {
      await deps.endLogin(visit, textOf(visit, 'login_id'));
      return redirectAfterPost(PATH, 'login-ended');
    },
  },
  {
    method: 'POST',
    path: `${PATH}/end-other-logins`,
    needs: 'read-only',
    endsLogins: true,
    handle: async (visit) => {
      await deps.endOtherLogins(visit);
      return redirectAfterPost(PATH, 'logins-ended');
    },
  },
  { method: 'GET', path: '/dashboard/password', beforeAll: true, handle: (visit) => passwordPage(visit) },
  {
    method: 'POST',
    path: '/dashboard/password',
    needs: 'read-only',
    beforeAll: true,
    endsLogins: true,
    handle: (visit) => changePassword(deps, visit),
  },
  {
    method: 'POST',
    path: '/dashboard/logout-everywhere',
    needs: 'read-only',
    beforeSecondFactor: true,
    endsLogins: true,
    handle: async ({ user }) => {
      await deps.endLogins(user.user_id);
      return redirectAfterPost('/dashboard/login', 'logged-out', noLoginCookie);
    },
  },
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

async function account(deps: AccountDeps, visit: Visit, refused: Refused = null): Promise<Reply> {
  const { user } = visit;
  const [logins, hasSecondFactor] = await Promise.all([
    deps.listLogins(visit),
    deps.hasSecondFactor(user.user_id),
  ]);
  return show(visit, {
    title: 'Your account',
    section: 'Settings',
    tab: PATH,
    refused,
    content: html`${facts([
      ['User', user.name],
      ['Role', user.role],
      ['Partner', user.partner_name],
      ['Partner id', html`<code>${user.partner_id}</code>`],
    ])}
    <div class="columns">
    ${panel(
      'Password',
      html`<p>A new password ends your other logins.</p>
      <p><a class="button" href="/dashboard/password">Change the password</a></p>`,
    )}
    ${panel(
      'Second factor',
      html`<p>${hasSecondFactor ? badge('on', 'good') : badge('off', 'off')}
      ${hasSecondFactor ? 'Each login asks for a code of your app.' : 'A code of an app on your phone, at each login, protects your account if somebody learns your password.'}</p>
      <p><a class="button${hasSecondFactor && ' quiet'}" href="${SECOND_FACTOR_PATH}">${hasSecondFactor ? 'Manage the second factor' : 'Set up a second factor'}</a></p>`,
    )}
    ${panel(
      'Time zone',
      form(
        visit,
        `${PATH}/time-zone`,
        html`${select(
          'Times are shown in',
          'time_zone',
          ZONES.map((zone) => [zone, zone.replaceAll('_', ' ')] as const),
          todaysName(user.time_zone),
        )}<button class="quiet">Save the time zone</button>`,
      ),
    )}
    </div>
    ${loginList(visit, logins)}`,
  });
}

function loginList(visit: Visit, logins: readonly Login[]): Content {
  const endForm = ({ login_id, is_this }: Login): Content =>
    is_this
      ? badge('this browser', 'good')
      : form(
          visit,
          `${PATH}/end-login`,
          html`<input type="hidden" name="login_id" value="${login_id}"><button class="quiet">End</button>`,
        );
  return html`${table(
    counted(logins.length, 'login'),
    ['Browser', 'Last used', 'Began', 'End'],
    logins.map((login) => [
      login.browser ?? 'Unknown browser',
      visit.ago(login.used_at),
      visit.time(login.began_at),
      endForm(login),
    ]),
  )}
  <p class="soft">A login ends after 12 hours without use, and after 7 days in any case.</p>
  <div class="actions">
  ${logins.length > 1 && form(visit, `${PATH}/end-other-logins`, html`<button class="quiet">End all other logins</button>`)}
  ${form(visit, '/dashboard/logout-everywhere', html`<button class="quiet">Log out everywhere</button>`)}</div>`;
}

async function setZone(deps: AccountDeps, visit: Visit): Promise<Reply> {
  const zone = zoneNamed(textOf(visit, 'time_zone'));
  if (zone === null) {
    const message = 'There is no such time zone. Choose one of the list.';
    return account(deps, visit, { ok: false, status: 400, code: 'invalid_time_zone', message });
  }
  await deps.setTimeZone(visit.user.user_id, zone);
  return redirectAfterPost(PATH, 'time-zone-set');
}

function passwordPage(visit: Visit, error?: string, wait: number | null = null): Reply {
  const { is_first, name } = visit.user;
  return showBare(
    is_first ? 'Choose your password' : 'Change the password',
    html`${error && alert({ message: error, code: 'password_refused' })}
    ${is_first && html`<p>The password that you have was made by somebody else. Choose one that nobody else knows.</p>`}
    ${form(
      visit,
      '/dashboard/password',
      html`<input type="text" name="name" value="${name}" autocomplete="username" readonly hidden>
      ${field('Password until now', 'current', { type: 'password', required: true, autocomplete: 'current-password' })}
      ${newPasswordFields('New password')}
      <button>Change the password</button> ${!is_first && html`<a class="button quiet" href="${PATH}">Cancel</a>`}`,
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
  const wrong = problemWithPassword(given, user.name, deps.weakness);
  if (wrong !== null) return passwordPage(visit, wrong);
  const wait = await deps.tooMany(visit);
  if (wait !== null) {
    return passwordPage(visit, `Too many attempts. Wait ${Math.ceil(wait / 60)} min, then try again.`, wait);
  }
  const token = await deps.changePassword(visit, given.get('current') ?? '', given.get('password') ?? '');
  if (token === null) return passwordPage(visit, 'The password until now is wrong.');
  // A first login goes on to Home, which has the next steps; who came from the account returns there.
  return redirectAfterPost(user.is_first ? '/dashboard' : PATH, 'password-changed', loginCookie(token));
}
