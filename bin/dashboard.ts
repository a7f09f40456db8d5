import { invitationDigest } from '../commands/partners/manage-team.ts';
import { deliveryId } from '../commands/webhooks/queue-deliveries.ts';
import { createSendTest } from '../commands/webhooks/send-test.ts';
import { probeEveryMs } from '../domain/webhooks/schedule.ts';
import type { Route } from '../http/contract/route.ts';
import { admitChange } from '../http/server/call-rates.ts';
import { createVisitorAddress, networkOf } from '../http/server/visitor.ts';
import { findNotices } from '../operations/conditions.ts';
import { createRequestedAudits } from '../processors/billing/requested-audits.ts';
import { joinTeam } from '../processors/partners/accept-invitation.ts';
import { createDashboardLogins } from '../processors/partners/log-in.ts';
import { createLoginLimits } from '../processors/partners/login-limits.ts';
import { createLogins } from '../processors/partners/logins.ts';
import { setTimeZone } from '../processors/partners/passwords.ts';
import { createFactorChanges, createSecondFactors } from '../processors/partners/second-factor.ts';
import { reserveForDelivery } from '../processors/webhooks/queue-admission.ts';
import { findInvitation } from '../queries/partners/team.ts';
import { createTrackerDays } from '../read-api/usage/partner-usage.ts';
import { type ApiDeps, createApi, type PageReads } from '../web/dashboard/api.ts';
import { accountPages } from '../web/dashboard/pages/account.ts';
import { activityPages } from '../web/dashboard/pages/activity.ts';
import { billingPages } from '../web/dashboard/pages/billing.ts';
import { companyPages } from '../web/dashboard/pages/companies.ts';
import { deliveryPages } from '../web/dashboard/pages/deliveries.ts';
import { domainPages } from '../web/dashboard/pages/domains.ts';
import { invitationPages } from '../web/dashboard/pages/invitation.ts';
import { keyPages } from '../web/dashboard/pages/keys.ts';
import { loginPages, logoutAction } from '../web/dashboard/pages/login.ts';
import { lookupPages } from '../web/dashboard/pages/lookup.ts';
import { overviewPage } from '../web/dashboard/pages/overview.ts';
import { recoveryPages } from '../web/dashboard/pages/recoveries.ts';
import { revealPages } from '../web/dashboard/pages/reveals.ts';
import { secondFactorPages } from '../web/dashboard/pages/second-factor.ts';
import { sessionPages } from '../web/dashboard/pages/sessions.ts';
import { hideStart } from '../web/dashboard/pages/start.ts';
import { teamPages } from '../web/dashboard/pages/team.ts';
import { trackerPages } from '../web/dashboard/pages/trackers.ts';
import { usagePages } from '../web/dashboard/pages/usage.ts';
import { type SendSample, webhookPages } from '../web/dashboard/pages/webhooks.ts';
import { dashboardRoutes } from '../web/dashboard/routes.ts';
import type { LoginServices } from '../web/dashboard/services.ts';
import { createKeyChanges } from '../write-api/partners/keys.ts';
import { createTeamChanges } from '../write-api/partners/team.ts';
import type { ApiContext } from './api-context.ts';

export interface Dashboard {
  readonly routes: readonly Route[];
  close(): Promise<void>;
}

/** Builds the dashboard: pages on the API's own routes, with separate logins. */
export function buildDashboard(context: ApiContext, api: ApiDeps): Dashboard {
  const { runtime, limiter, ownWrite, publicUrl } = context;
  const changes = {
    ...runtime,
    projected: ownWrite(['partners', 'team']),
    admitChange: (partnerId: string) => admitChange(limiter, partnerId),
  };
  const keyChanges = createKeyChanges({ ...changes, projected: ownWrite(['partners']) });
  const services = loginServices(context);
  const audits = createRequestedAudits(runtime);
  const routes = dashboardRoutes({
    ...createApi(api),
    ...services,
    publicUrl,
    reads: pageReads(context),
    open: [...loginPages(services), ...invitationPages(services)],
    pages: [
      logoutAction(services),
      ...accountPages(services),
      ...secondFactorPages(services),
      ...teamPages(createTeamChanges(changes)),
      overviewPage,
      ...companyPages,
      ...usagePages,
      ...lookupPages(keyChanges),
      hideStart,
      ...sessionPages,
      ...revealPages,
      ...trackerPages,
      ...keyPages(keyChanges),
      ...webhookPages(sampleSender(context)),
      ...recoveryPages,
      ...deliveryPages,
      ...activityPages,
      ...domainPages,
      ...billingPages(audits),
    ],
  });
  return { routes, close: audits.close };
}

function pageReads({ runtime, waitForHead }: ApiContext): PageReads {
  const { db, pool, clock, dayKeys, cursors, config } = runtime;
  return {
    ...{ db, pool, clock, dayKeys, cursors, waitForHead, deliveryId },
    trackerDays: createTrackerDays(db, clock.now),
    notices: (partnerId, now) => findNotices({ ...runtime, partnerId, now }),
    probeMs: probeEveryMs(config.RETRY_BASE_SECONDS * 1_000),
    price: config.UNIT_PRICE ?? null,
  };
}

function loginServices({ runtime, limiter, ownWrite }: ApiContext): LoginServices {
  const { config, db, pool, digest } = runtime;
  const limits = createLoginLimits(limiter);
  const logins = createLogins(runtime);
  const factors = createSecondFactors(runtime);
  const visitorAddress = createVisitorAddress(config.TRUSTED_PROXIES);
  const joining = { ...runtime, logins, projected: ownWrite(['partners', 'team']) };
  return {
    limits,
    logins,
    factors,
    factorChanges: createFactorChanges({ ...runtime, factors }),
    dashboardLogins: createDashboardLogins({ ...runtime, limits, logins, factors }),
    networkOf: (request) => digest(networkOf(visitorAddress(request))),
    findInvitation: (token) => findInvitation(db, invitationDigest(token)),
    join: (invitation, command) => joinTeam(joining, invitation, command),
    setTimeZone: (userId, timeZone) => setTimeZone(pool, userId, timeZone),
  };
}

function sampleSender({ runtime, ownWrite }: ApiContext): SendSample {
  const sendTest = createSendTest({ ...runtime, reserveQueue: reserveForDelivery(runtime.queue) });
  const projected = ownWrite(['deliveries', 'payloads']);
  return async (...sample) => {
    const sent = await sendTest(...sample);
    if (sent.ok) await projected(sent.value.position).catch(() => undefined);
    return sent;
  };
}
