import { changeUser, userIdOf } from '../commands/partners/manage-user.ts';
import type { ApiDeps } from '../dashboard/api.ts';
import { type AccountDeps, accountPages } from '../dashboard/pages/account.ts';
import { billingPages } from '../dashboard/pages/billing.ts';
import { deliveryPages } from '../dashboard/pages/deliveries.ts';
import { domainPages } from '../dashboard/pages/domains.ts';
import { keyPages } from '../dashboard/pages/keys.ts';
import { type LoginDeps, loginPages, logoutAction } from '../dashboard/pages/login.ts';
import { overviewPage } from '../dashboard/pages/overview.ts';
import { revealPages } from '../dashboard/pages/reveals.ts';
import { sessionPages } from '../dashboard/pages/sessions.ts';
import { trackerPages } from '../dashboard/pages/tracker.ts';
import { trackerListPages } from '../dashboard/pages/trackers.ts';
import { webhookPages } from '../dashboard/pages/webhook.ts';
import { webhookListPages } from '../dashboard/pages/webhooks.ts';
import { dashboardRoutes } from '../dashboard/routes.ts';
import { MINUTE } from '../domain/kernel/time.ts';
import type { Route } from '../http/route.ts';
import { createVisitorAddress, networkOf } from '../http/visitor.ts';
import { weaknessOf } from '../platform/password-strength.ts';
import { hashPassword, isPassword } from '../platform/passwords.ts';
import type { RateLimiter, Verdict } from '../platform/rate-limit.ts';
import {
  createLoginNetworks,
  createLogins,
  LOGIN_RATES,
  LOGIN_WINDOW,
  type Logins,
  passwordOf,
  replacePassword,
} from '../processors/partners/logins.ts';
import { listDomainsOfPartner } from '../queries/domains/domains.ts';
import type { ApiContext } from './api-context.ts';
import { visitContext } from './dashboard-context.ts';
import { dashboardKeys } from './dashboard-keys.ts';
import { dashboardBilling, dashboardOverview, dashboardSessions } from './dashboard-reads.ts';
import { dashboardRetries } from './dashboard-retries.ts';
import type { Runtime } from './runtime.ts';

export interface Dashboard {
  readonly routes: readonly Route[];
  close(): Promise<void>;
}

/** Builds the dashboard: pages on the API's own routes, with separate logins. */
export const buildDashboard = (
  { runtime, limiter, ownWrite, caughtUp }: ApiContext,
  api: ApiDeps,
): Dashboard => {
  const logins = createLogins(runtime);
  const login = loginDeps(runtime, limiter, logins);
  const sessions = dashboardSessions(runtime, caughtUp(['sessions', 'reveals']));
  const billing = dashboardBilling(runtime, caughtUp(['reveal-units']));
  const routes = dashboardRoutes({
    ...api,
    findLogin: logins.find,
    admitForm: async ({ user_id }) =>
      secondsOf(await limiter.admit(`forms of ${user_id}`, FORMS_PER_MINUTE, MINUTE)),
    admitPage: async ({ user_id }) => secondsOf(await limiter.admit(`pages of ${user_id}`, PAGES_PER_SECOND)),
    open: loginPages(login),
    pages: [
      logoutAction(login),
      ...accountPages(accountDeps(runtime, limiter, logins)),
      overviewPage(dashboardOverview(runtime, caughtUp(['usage', 'reveal-units']))),
      ...sessionPages(sessions),
      ...revealPages(sessions),
      ...trackerListPages,
      ...trackerPages,
      ...keyPages(dashboardKeys(runtime, ownWrite(['partners']))),
      ...webhookListPages,
      ...webhookPages,
      ...deliveryPages(dashboardRetries(runtime, caughtUp(['webhooks', 'deliveries', 'payloads']))),
      ...domainPages({ list: (partnerId) => listDomainsOfPartner(runtime.db, partnerId) }),
      ...billingPages(billing),
    ],
  });
  return { routes, close: billing.close };
};

/** More than a person needs; it limits scripts that use a person's cookie. */
const FORMS_PER_MINUTE = 60;
const PAGES_PER_SECOND = 30;

const secondsOf = (verdict: Verdict): number | null => verdict && Math.ceil(verdict.retryMs / 1_000);

/** Login attempts per window: per network, per user and network, per user from networks that are new to the user. */
const ATTEMPTS_PER_NETWORK = 100;
const ATTEMPTS_PER_USER_AND_NETWORK = 10;
const ATTEMPTS_PER_USER = 50;

/** Uses digests, because rate names are stored. Checks the network first, which bounds the names that one network writes. */
const createThrottle = (runtime: Runtime, { admit }: RateLimiter) => {
  const networks = createLoginNetworks(runtime);
  return async (userId: string, address: string): Promise<number | null> => {
    const network = runtime.digest(networkOf(address));
    // Attempts from other networks do not lock users out of networks that they have logged in from.
    const isKnown = await networks.isKnown(userId, network);
    const rates: [string, number][] = [
      [`${LOGIN_RATES}from ${network}`, ATTEMPTS_PER_NETWORK],
      [`${LOGIN_RATES}${userId} ${network}`, ATTEMPTS_PER_USER_AND_NETWORK],
      ...(isKnown ? [] : [[`${LOGIN_RATES}${userId}`, ATTEMPTS_PER_USER] satisfies [string, number]]),
    ];
    for (const [name, ceiling] of rates) {
      const verdict = await admit(name, ceiling, LOGIN_WINDOW);
      if (verdict !== null) return Math.ceil(verdict.retryMs / 1_000);
    }
    return null;
  };
};

const loginDeps = (runtime: Runtime, limiter: RateLimiter, logins: Logins): LoginDeps => {
  const throttle = createThrottle(runtime, limiter);
  const networks = createLoginNetworks(runtime);
  const addressOf = createVisitorAddress(runtime.config.TRUSTED_PROXIES);
  return {
    tooMany: (name, request) => throttle(userIdOf(name), addressOf(request)),
    logIn: async (name, password, request) => {
      const userId = userIdOf(name);
      const known = await passwordOf(runtime.pool, userId);
      if (!(await isPassword(password, known)) || known === null) return null;
      const token = await logins.begin(userId, known);
      const network = runtime.digest(networkOf(addressOf(request)));
      if (token !== null) await networks.remember(userId, network);
      return token;
    },
    logOut: logins.end,
  };
};

const accountDeps = (runtime: Runtime, limiter: RateLimiter, logins: Logins): AccountDeps => {
  const { pool, store, clock } = runtime;
  const throttle = createThrottle(runtime, limiter);
  const addressOf = createVisitorAddress(runtime.config.TRUSTED_PROXIES);
  return {
    tooMany: ({ user, request }) => throttle(user.user_id, addressOf(request)),
    changePassword: async (visit, current, password) => {
      const { user_id: userId } = visit.user;
      const known = await passwordOf(pool, userId);
      if (!(await isPassword(current, known)) || known === null) return null;
      const hash = await hashPassword(password);
      // If an operator has reset the password meanwhile, that one stays.
      const next = { userId, hash, isFirst: false, at: clock.now() };
      if (!(await replacePassword(pool, known, next))) return null;
      await changeUser(store, 'ChangePassword', userId, visitContext(visit));
      return logins.begin(userId, hash);
    },
    weakness: weaknessOf,
    countLogins: logins.count,
    endLogins: logins.endAll,
  };
};
