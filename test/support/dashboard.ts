/** Dashboard users, and pages as a browser without scripts requests them. */
import { randomUUID } from 'node:crypto';
import type { LightMyRequestResponse } from 'fastify';
import { createUser } from '../../commands/partners/manage-user.ts';
import type { Role } from '../../domain/partners/events.ts';
import { hashPassword } from '../../platform/crypto/passwords.ts';
import { createLogins } from '../../processors/partners/logins.ts';
import { passwordOf, setPassword } from '../../processors/partners/passwords.ts';
import type { TestApi } from './api.ts';

export const PASSWORD = 'three wise words';
const HOST = 'dashboard.test';

export interface TestUser {
  readonly name: string;
  readonly user_id: string;
  readonly partner_id: string;
}

let hashOfPassword: Promise<string> | null = null;

/** Creates a user of a partner with `PASSWORD`. */
export const makeUser = async (
  { runtime, caughtUp }: TestApi,
  partner_id: string,
  {
    isFirst = false,
    name = `user ${randomUUID()}`,
    role = 'owner',
  }: { isFirst?: boolean; name?: string; role?: Role } = {},
): Promise<TestUser> => {
  const { store, pool, clock } = runtime;
  const context = { correlationId: 'a test', causationId: 'a test', at: clock.now() };
  const made = await createUser(store, { partner_id, name, role }, context);
  if (!made.ok) throw new Error(made.refusal);
  const { user_id } = made.value;
  hashOfPassword ??= hashPassword(PASSWORD);
  const hash = await hashOfPassword;
  await setPassword(pool, { userId: user_id, hash, isFirst, at: clock.now() });
  await caughtUp();
  return { name, user_id, partner_id };
};

export interface Sent {
  readonly cookie?: string;
  readonly form?: Readonly<Record<string, string | readonly string[]>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A browser's request: a form comes from a page of this host. */
export const browse = (
  { app }: TestApi,
  method: 'GET' | 'POST',
  url: string,
  { cookie, form, headers = {} }: Sent = {},
): Promise<LightMyRequestResponse> =>
  app.inject({
    method,
    url,
    headers: {
      host: HOST,
      ...(cookie === undefined ? {} : { cookie }),
      ...(method === 'GET'
        ? {}
        : { origin: `https://${HOST}`, 'content-type': 'application/x-www-form-urlencoded' }),
      ...headers,
    },
    ...(method === 'GET' ? {} : { payload: encoded(form ?? {}) }),
  });

const encoded = (form: NonNullable<Sent['form']>): string =>
  new URLSearchParams(
    Object.entries(form).flatMap(([name, value]) =>
      [value].flat().map((one): [string, string] => [name, one]),
    ),
  ).toString();

/** The cookie that a response sets, as a browser returns it; null where it sets none. */
export const cookieOf = ({ headers }: LightMyRequestResponse): string | null => {
  const [cookie] = [headers['set-cookie'] ?? ''].flat();
  return /^[^;]+/.exec(cookie ?? '')?.[0] ?? null;
};

export const logIn = (api: TestApi, name: string, password = PASSWORD, sent: Sent = {}) =>
  browse(api, 'POST', '/dashboard/login', { ...sent, form: { name, password } });

export interface LoggedIn {
  readonly cookie: string;
  get(path: string): Promise<LightMyRequestResponse>;
  /** Sends a form with its page's CSRF token, and with the password that changes of access ask for. */
  send(path: string, form?: Sent['form']): Promise<LightMyRequestResponse>;
}

/** A logged-in browser of a user, without the form of the login, because few passwords are checked at once. */
export const loggedIn = async (api: TestApi, { user_id }: TestUser): Promise<LoggedIn> => {
  const known = await passwordOf(api.runtime.pool, user_id);
  const token = known && (await createLogins(api.runtime).begin(user_id, known));
  if (token === null) throw new Error(`${user_id} cannot log in`);
  const cookie = `__Host-doorplate=${token}`;
  const get = (path: string) => browse(api, 'GET', `/dashboard${path}`, { cookie });
  const findCsrf = async () => csrfIn((await get('/account')).body) ?? csrfIn((await get('/password')).body);
  let found: ReturnType<typeof findCsrf> | null = null;
  return {
    cookie,
    get,
    send: async (path, form = {}) => {
      // Every page of a login has the same token.
      found ??= findCsrf();
      return browse(api, 'POST', `/dashboard${path}`, {
        cookie,
        form: { csrf: (await found) ?? '', proof: PASSWORD, ...form },
      });
    },
  };
};

const csrfIn = (page: string): string | undefined => /name="csrf" value="([^"]+)"/.exec(page)?.[1];
