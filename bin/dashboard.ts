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
import { trackerListPages, trackerPages } from '../dashboard/pages/trackers.ts';
import { webhookListPages, webhookPages } from '../dashboard/pages/webhooks.ts';
import { dashboardRoutes } from '../dashboard/routes.ts';
import { MINUTE } from '../domain/kernel/time.ts';
import type { ApiRequest, Route } from '../http/contract/route.ts';
import { admitChange } from '../http/server/call-rates.ts';
import { createVisitorAddress, networkOf } from '../http/server/visitor.ts';
import { weaknessOf } from '../platform/password-strength.ts';
import { retrySeconds, type Verdict } from '../platform/rate-limit.ts';
import {
  createDashboardLogins,
  createLogins,
  type DashboardLogins,
  type Logins,
} from '../processors/partners/logins.ts';
import { listDomainsOfPartner } from '../read-api/domains/domains.ts';
import type { ApiContext } from './api-context.ts';
import {
  dashboardBilling,
  dashboardKeys,
  dashboardOverview,
  dashboardRetries,
  dashboardSessions,
  visitContext,
} from './dashboard-deps.ts';

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
  const visitorAddress = createVisitorAddress(runtime.config.TRUSTED_PROXIES);
  const parts: LoginParts = {
    networkOfVisitor: (request) => runtime.digest(networkOf(visitorAddress(request))),
    dashboardLogins: createDashboardLogins({ ...runtime, limiter, logins }),
  };
  const login = loginDeps(parts, logins);
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
      ...accountPages(accountDeps(parts, logins, limiter)),
      overviewPage(dashboardOverview(runtime, caughtUp(['usage', 'reveal-units']))),
      ...sessionPages(sessions),
      ...revealPages(sessions),
      ...trackerListPages,
      ...trackerPages,
      ...keyPages(
        dashboardKeys(runtime, ownWrite(['partners']), (partnerId) => admitChange(limiter, partnerId)),
      ),
      ...webhookListPages,
      ...webhookPages,
      ...deliveryPages(dashboardRetries(runtime, caughtUp(['webhooks', 'deliveries', 'payloads']))),
      ...domainPages({ list: (partnerId) => listDomainsOfPartner(runtime.db, partnerId) }),
      ...billingPages(billing),
    ],
  });
  return { routes, close: billing.close };
};

interface LoginParts {
  readonly networkOfVisitor: (request: ApiRequest) => string;
  readonly dashboardLogins: DashboardLogins;
}

/** More than a person needs; it limits scripts that use a person's cookie. */
const FORMS_PER_MINUTE = 60;
const PAGES_PER_SECOND = 30;

const secondsOf = (verdict: Verdict): number | null => verdict && retrySeconds(verdict);

const loginDeps = (
  { networkOfVisitor, dashboardLogins: { logIn } }: LoginParts,
  { end }: Logins,
): LoginDeps => ({
  logIn: (attempt, request) => logIn({ ...attempt, network: networkOfVisitor(request) }),
  logOut: end,
});

const accountDeps = (
  { networkOfVisitor, dashboardLogins: { admitPasswordChange, changePassword } }: LoginParts,
  { count, endAll }: Logins,
  limiter: ApiContext['limiter'],
): AccountDeps => ({
  admitForm: async ({ user, request }) => {
    const name = `password forms of ${user.user_id} ${networkOfVisitor(request)}`;
    return secondsOf(await limiter.admit(name, FORMS_PER_MINUTE, MINUTE));
  },
  tooMany: ({ user }) => admitPasswordChange(user.user_id),
  changePassword: (visit, current, password) =>
    changePassword(visit.user.user_id, current, password, visitContext(visit)),
  weakness: weaknessOf,
  countLogins: count,
  endLogins: endAll,
});
