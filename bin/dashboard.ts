import type { CommandContext } from '../commands/handle.ts';
import { isoTime, MINUTE } from '../domain/kernel/time.ts';
import { DEFAULT_LIMITS } from '../domain/partners/partner.ts';
import type { Position } from '../event-store/port.ts';
import type { ApiRequest, Route } from '../http/contract/route.ts';
import { admitChange } from '../http/server/call-rates.ts';
import { createVisitorAddress, networkOf } from '../http/server/visitor.ts';
import { findNotices } from '../operations/conditions.ts';
import { weaknessOf } from '../platform/crypto/password-strength.ts';
import { retrySeconds, type Verdict } from '../platform/limits/rate-limit.ts';
import { createRequestedAudits } from '../processors/billing/requested-audits.ts';
import { createDashboardLogins, createLogins, setTimeZone } from '../processors/partners/logins.ts';
import { createSecondFactors } from '../processors/partners/second-factor.ts';
import { listActivity } from '../queries/activity/activity.ts';
import { listMonths } from '../queries/billing/reveal-units.ts';
import { readAllowance } from '../queries/lookup/allowances.ts';
import {
  findCallingKey,
  findKey,
  findPartner,
  type KeyRow,
  listKeyUses,
  listLatestKeys,
  listUsers,
} from '../queries/partners/partners.ts';
import { listRevealsOf } from '../queries/reveals/reveals.ts';
import { hasHadVisit, readInstallEvidence } from '../queries/trackers/install-evidence.ts';
import { listDomainsOfPartner } from '../read-api/domains/domains.ts';
import {
  listCompanies,
  listCompanyVisits,
  REVEALS_IN_A_FILE,
  REVEALS_ON_A_PAGE,
} from '../read-api/reveals/companies.ts';
import { searchSessions } from '../read-api/sessions/sessions.ts';
import {
  createTrackerDays,
  type Range,
  readLookupDays,
  readStartState,
} from '../read-api/usage/partner-usage.ts';
import { type ApiDeps, createApi, type Visit } from '../web/dashboard/api.ts';
import type { InstallEvidence } from '../web/dashboard/install-findings.ts';
import { type AccountDeps, accountPages } from '../web/dashboard/pages/account.ts';
import { type ActivityDeps, type ActivityFilter, activityPages } from '../web/dashboard/pages/activity.ts';
import { billingPages } from '../web/dashboard/pages/billing.ts';
import { companyPages, MAX_VISITS } from '../web/dashboard/pages/companies.ts';
import { domainPages } from '../web/dashboard/pages/domains.ts';
import { invitationPages } from '../web/dashboard/pages/invitation.ts';
import { type DashboardKey, type KeyDeps, keyPages } from '../web/dashboard/pages/keys.ts';
import { type LoginDeps, loginPages, logoutAction } from '../web/dashboard/pages/login.ts';
import { type LookupDeps, lookupPages } from '../web/dashboard/pages/lookup.ts';
import { type OverviewDeps, overviewPage } from '../web/dashboard/pages/overview.ts';
import { revealPages } from '../web/dashboard/pages/reveals.ts';
import { secondFactorPages } from '../web/dashboard/pages/second-factor.ts';
import { type SessionDeps, sessionPages } from '../web/dashboard/pages/sessions.ts';
import { hideStart } from '../web/dashboard/pages/start.ts';
import { teamPages } from '../web/dashboard/pages/team.ts';
import { trackerListPages, trackerPages } from '../web/dashboard/pages/trackers.ts';
import { usagePages } from '../web/dashboard/pages/usage.ts';
import { dashboardRoutes } from '../web/dashboard/routes.ts';
import { createKeyChanges } from '../write-api/partners/keys.ts';
import type { ApiContext } from './api-context.ts';
import { webhookPagesOf } from './modules/webhook-pages.ts';
import type { Runtime } from './runtime.ts';
import {
  browserIn,
  dashboardInvitations,
  dashboardSecondFactors,
  dashboardTeam,
  ownerNames,
} from './team.ts';

/** What the dashboard's pages read and change, beside the API's routes. */

const visitContext = ({ request, user }: Visit): CommandContext => ({
  correlationId: request.id,
  causationId: request.id,
  at: request.receivedAt,
  partnerId: user.partner_id,
  userId: user.user_id,
});

/** A page with ten thousand keys would block the event loop for a third of a second. */
const ENDED_SHOWN = 50;

/** PostgreSQL refuses a NUL, which a path may hold. */
const KEY_ID = /^[\w-]{1,100}$/;

async function withUses(db: Runtime['db'], keys: readonly KeyRow[]): Promise<DashboardKey[]> {
  const uses = await listKeyUses(
    db,
    keys.map(({ key_id }) => key_id),
  );
  return keys.map((key) => ({ ...key, used_at: uses.get(key.key_id) ?? null }));
}

function dashboardKeys(
  { store, db, clock }: Runtime,
  ownWrite: (position: Position | null) => Promise<unknown>,
  admitChange: (partnerId: string) => Promise<boolean>,
): KeyDeps {
  const changes = createKeyChanges({ store, projected: ownWrite, admitChange });
  return {
    ceilingsOf: async (partnerId) => {
      const partner = await findPartner(db, partnerId);
      if (partner === null) throw new TypeError('the partner of a logged-in user does not exist');
      return partner;
    },
    usualLimits: DEFAULT_LIMITS,
    list: async (partnerId) =>
      withUses(db, await listLatestKeys(db, partnerId, isoTime(clock.now()), ENDED_SHOWN)),
    find: async (partnerId, keyId) => {
      const key = KEY_ID.test(keyId) ? await findKey(db, keyId) : null;
      return key?.partner_id === partnerId ? ((await withUses(db, [key]))[0] ?? null) : null;
    },
    create: (visit, { name, limits }) =>
      changes.create(visit.user.partner_id, name, limits, visitContext(visit)),
    update: (visit, keyId, limits) =>
      changes.update(visit.user.partner_id, keyId, limits, visitContext(visit)),
    revoke: (visit, keyId) => changes.revoke(visit.user.partner_id, keyId, visitContext(visit)),
  };
}

type WaitForHead = () => Promise<boolean>;

/** Makes a read include what was written before it. */
const upToDate =
  <Args extends unknown[], T>(waitForHead: WaitForHead, read: (...args: Args) => Promise<T>) =>
  async (...args: Args): Promise<T> => {
    await waitForHead();
    return read(...args);
  };

const dashboardOverview = (runtime: Runtime, waitForHead: WaitForHead): OverviewDeps => ({
  lookups: upToDate(waitForHead, (partnerId: string, range: Range) =>
    readLookupDays(runtime.db, partnerId, range),
  ),
  trackerDays: createTrackerDays(runtime.db, runtime.clock.now),
  companies: (partnerId, trackerId, { from, to }, asOf, asFile = false) =>
    listCompanies(
      runtime.db,
      { partnerId, trackerId, from, to, asOf },
      asFile ? REVEALS_IN_A_FILE : REVEALS_ON_A_PAGE,
    ),
  startState: (partnerId) => readStartState(runtime.db, partnerId),
  notices: ({ user, request }) =>
    findNotices({ ...runtime, partnerId: user.partner_id, now: request.receivedAt }),
});

const dashboardSessions = (runtime: Runtime, waitForHead: WaitForHead): SessionDeps => ({
  search: upToDate(waitForHead, ({ user, request }: Visit, search) =>
    searchSessions(runtime, user.partner_id, search, request.receivedAt),
  ),
  revealsOf: upToDate(waitForHead, (partnerId: string, sessionIds: readonly string[]) =>
    listRevealsOf(runtime.db, partnerId, sessionIds),
  ),
});

/** Lookups from a page, made by a key of the partner's that can be used. */
const dashboardLookups = (runtime: Runtime, callAs: ReturnType<typeof createApi>['callAs']): LookupDeps => ({
  usableKeys: (partnerId) => listLatestKeys(runtime.db, partnerId, isoTime(runtime.clock.now()), 0),
  asKey: async ({ user, request }, keyId) => {
    if (!KEY_ID.test(keyId)) return null;
    const key = await findCallingKey(runtime, { partner_id: user.partner_id, key_id: keyId });
    return key && callAs(request, key);
  },
});

const dashboardActivity = (
  { db, clock }: Runtime,
  waitForHead: WaitForHead,
  actors: ActivityDeps['actors'],
): ActivityDeps => ({
  list: upToDate(waitForHead, (partnerId: string, { from, to, ...filter }: ActivityFilter, before, limit) =>
    listActivity(db, {
      partnerId,
      ...filter,
      since: Date.parse(from),
      until: Date.parse(to),
      before,
      limit,
      now: clock.now(),
    }),
  ),
  actors,
});

async function readEvidence({ pool, clock }: Runtime, trackerId: string): Promise<InstallEvidence> {
  const [seen, had] = await Promise.all([
    readInstallEvidence(pool, trackerId, clock.now()),
    hasHadVisit(pool, trackerId),
  ]);
  return { ...seen, hasHadVisit: had };
}

export interface Dashboard {
  readonly routes: readonly Route[];
  close(): Promise<void>;
}

/** Builds the dashboard: pages on the API's own routes, with separate logins. */
export function buildDashboard(context: ApiContext, api: ApiDeps): Dashboard {
  const { runtime, limiter, ownWrite, waitForHead, publicUrl } = context;
  const { db, pool, config, digest, clock } = runtime;
  const logins = createLogins(runtime);
  const visitorAddress = createVisitorAddress(config.TRUSTED_PROXIES);
  const networkOfVisitor = (request: ApiRequest): string => digest(networkOf(visitorAddress(request)));
  const factors = createSecondFactors(runtime);
  const dashboardLogins = createDashboardLogins({ ...runtime, limiter, logins, factors });
  const originOf = (request: ApiRequest) => ({
    network: networkOfVisitor(request),
    browser: browserIn(request),
  });
  const login: LoginDeps = {
    logIn: (attempt, request) => dashboardLogins.logIn({ ...attempt, ...originOf(request) }),
    enterCode: (attempt, request) => dashboardLogins.enterCode({ ...attempt, ...originOf(request) }),
    logOut: logins.end,
  };
  const account: AccountDeps = {
    admitForm: async ({ user, request }) => {
      const name = `password forms of ${user.user_id} ${networkOfVisitor(request)}`;
      return secondsOf(await limiter.admit(name, FORMS_PER_MINUTE, MINUTE));
    },
    tooMany: ({ user }) => dashboardLogins.admitPasswordChange(user.user_id),
    changePassword: (visit, current, password) => {
      const given = { current, password, token: visit.token, browser: browserIn(visit.request) };
      return dashboardLogins.changePassword(visit.user.user_id, given, visitContext(visit));
    },
    weakness: weaknessOf,
    hasSecondFactor: factors.isSetUp,
    listLogins: ({ user, token }) => logins.list(user.user_id, token),
    endLogin: ({ user }, loginId) => logins.endOne(user.user_id, loginId),
    endOtherLogins: ({ user, token }) => logins.endOthers(user.user_id, token),
    endLogins: logins.endAll,
    setTimeZone: (userId, timeZone) => setTimeZone(pool, userId, timeZone),
  };
  const overview = dashboardOverview(
    runtime,
    waitForHead(['usage', 'tracker-usage', 'reveals', 'sessions', 'reveal-units']),
  );
  const keysOf = (partnerId: string) => listLatestKeys(db, partnerId, isoTime(clock.now()), ENDED_SHOWN);
  const actorsOf: ActivityDeps['actors'] = async (partnerId) => {
    const [users, keys] = await Promise.all([listUsers(db, partnerId), keysOf(partnerId)]);
    return [
      ...users.map(({ user_id, name }) => ({ kind: 'user', id: user_id, name })),
      ...keys.map(({ key_id, name }) => ({ kind: 'key', id: key_id, name })),
    ];
  };
  const sessions = dashboardSessions(runtime, waitForHead(['sessions', 'reveals']));
  const audits = createRequestedAudits(runtime);
  const months = upToDate(waitForHead(['reveal-units']), (partnerId: string) => listMonths(db, partnerId));
  const { callAs, callAsUser } = createApi(api);
  const routes = dashboardRoutes({
    callAsUser,
    publicUrl,
    findLogin: logins.find,
    listOwners: (partnerId) => ownerNames(db, partnerId),
    admitForm: async ({ user_id }) =>
      secondsOf(await limiter.admit(`forms of ${user_id}`, FORMS_PER_MINUTE, MINUTE)),
    admitPage: async ({ user_id }) => secondsOf(await limiter.admit(`pages of ${user_id}`, PAGES_PER_SECOND)),
    checkProof: async ({ user_id }, passwordOrCode) => {
      const wait = await dashboardLogins.admitPasswordChange(user_id);
      if (wait !== null) return wait;
      return (await dashboardLogins.isProven(user_id, passwordOrCode)) ? null : 'wrong';
    },
    open: [...loginPages(login), ...invitationPages(dashboardInvitations(context, logins))],
    pages: [
      logoutAction(login),
      ...accountPages(account),
      ...secondFactorPages(
        dashboardSecondFactors(context, factors, dashboardLogins.admitPasswordChange, visitContext),
      ),
      ...teamPages(dashboardTeam(context, visitContext)),
      overviewPage(overview),
      ...companyPages({
        ...overview,
        companyVisits: ({ user }, name) =>
          listCompanyVisits(db, {
            partnerId: user.partner_id,
            trackerId: null,
            name,
            limit: MAX_VISITS,
          }),
      }),
      ...usagePages({
        ...overview,
        keys: keysOf,
        allowance: (partnerId) => readAllowance(pool, partnerId, clock.now()),
      }),
      ...lookupPages(dashboardLookups(runtime, callAs)),
      hideStart,
      ...sessionPages(sessions),
      ...revealPages(sessions),
      ...trackerListPages,
      ...trackerPages({ evidence: (trackerId) => readEvidence(runtime, trackerId) }),
      ...keyPages(
        dashboardKeys(runtime, ownWrite(['partners']), (partnerId) => admitChange(limiter, partnerId)),
      ),
      ...webhookPagesOf(context, visitContext),
      ...activityPages(dashboardActivity(runtime, waitForHead(['activity', 'partners']), actorsOf)),
      ...domainPages({ list: (partnerId) => listDomainsOfPartner(db, partnerId) }),
      ...billingPages({
        ...audits,
        audit: (visit) => audits.audit(visit.user.partner_id, visitContext(visit)),
        months,
        trackerDays: overview.trackerDays,
        actors: actorsOf,
      }),
    ],
  });
  return { routes, close: audits.close };
}

/** More than a person needs; it limits scripts that use a person's cookie. */
const FORMS_PER_MINUTE = 60;
const PAGES_PER_SECOND = 30;

const secondsOf = (verdict: Verdict): number | null => verdict && retrySeconds(verdict);
