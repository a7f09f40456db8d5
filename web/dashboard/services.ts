import type { ApiRequest } from '../../http/contract/route.ts';
import type { joinTeam } from '../../processors/partners/accept-invitation.ts';
import type { DashboardLogins } from '../../processors/partners/log-in.ts';
import type { LoginLimits } from '../../processors/partners/login-limits.ts';
import type { Logins } from '../../processors/partners/logins.ts';
import type { createFactorChanges, SecondFactors } from '../../processors/partners/second-factor.ts';
import type { InvitationLink } from '../../queries/partners/team.ts';
import { deviceIn } from './answers.ts';
import { browserOf } from './browser-name.ts';

/** Logins, passwords and second factors, which the partners' API does not have. */
export interface LoginServices {
  readonly logins: Logins;
  readonly dashboardLogins: DashboardLogins;
  readonly factors: SecondFactors;
  readonly factorChanges: ReturnType<typeof createFactorChanges>;
  readonly limits: LoginLimits;
  /** The keyed digest of the visitor's network. */
  readonly networkOf: (request: ApiRequest) => string;
  /** Finds the invitation of a link with this token. */
  readonly findInvitation: (token: string) => Promise<InvitationLink | null>;
  readonly join: (
    joining: Parameters<typeof joinTeam>[1],
    context: Parameters<typeof joinTeam>[2],
  ) => ReturnType<typeof joinTeam>;
  readonly setTimeZone: (userId: string, timeZone: string) => Promise<void>;
}

/** The browser of a request, in words; null: not known. */
export const browserIn = (request: ApiRequest): string | null => browserOf(request.header('user-agent'));

/** Where an attempt to log in comes from. */
export const originOf = ({ networkOf }: LoginServices, request: ApiRequest) => ({
  network: networkOf(request),
  device: deviceIn(request.header('cookie')),
  browser: browserIn(request),
});
