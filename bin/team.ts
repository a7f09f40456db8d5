import type { CommandContext } from '../commands/handle.ts';
import { invitationDigest, type MemberOfTeam, recordSecondFactor } from '../commands/partners/manage-team.ts';
import { isoTime, MINUTE } from '../domain/kernel/time.ts';
import { asUuid } from '../http/contract/parameters.ts';
import type { ApiRequest } from '../http/contract/route.ts';
import { admitChange } from '../http/server/call-rates.ts';
import { weaknessOf } from '../platform/crypto/password-strength.ts';
import { retrySeconds } from '../platform/limits/rate-limit.ts';
import { joinTeam } from '../processors/partners/accept-invitation.ts';
import type { Logins } from '../processors/partners/logins.ts';
import { type SecondFactors, turnOffSecondFactor } from '../processors/partners/second-factor.ts';
import {
  findInvitation,
  findMember,
  findPresentOrFormerMember,
  type InvitationLink,
  isSecondFactorRequired,
  listInvitations,
  listMembers,
  listOwners,
} from '../queries/partners/team.ts';
import type { Visit } from '../web/dashboard/api.ts';
import { browserOf } from '../web/dashboard/browser-name.ts';
import type { InvitationDeps } from '../web/dashboard/pages/invitation.ts';
import type { SecondFactorDeps } from '../web/dashboard/pages/second-factor.ts';
import type { TeamDeps } from '../web/dashboard/pages/team.ts';
import { createTeamChanges, teamRefusal } from '../write-api/partners/team.ts';
import type { ApiContext } from './api-context.ts';

/** What the dashboard's pages about users read and change. */

const MEMBERS_SHOWN = 200;
const JOIN_FORMS_PER_MINUTE = 20;

export function dashboardTeam(
  { runtime, limiter, ownWrite, publicUrl }: ApiContext,
  contextOf: (visit: Visit) => CommandContext,
): TeamDeps {
  const { db } = runtime;
  const changes = createTeamChanges({
    ...runtime,
    projected: ownWrite(['partners', 'team']),
    admitChange: (partnerId) => admitChange(limiter, partnerId),
  });

  const find = async ({ user }: Visit, userId: string) => {
    const id = asUuid(userId);
    return id === null ? null : findMember(db, user.partner_id, id);
  };

  /** Changes a user of the visitor's own team. */
  async function withMember<T>(
    { user }: Visit,
    userId: string,
    change: (member: MemberOfTeam) => Promise<T>,
    findIt: typeof findPresentOrFormerMember = findMember,
  ) {
    const id = asUuid(userId);
    const member = id === null ? null : await findIt(db, user.partner_id, id);
    if (member === null) return teamRefusal('user_not_found');
    const owners = await listOwners(db, user.partner_id);
    const { user_id, partner_id, role } = member;
    return change({ user_id, partner_id, role, owners: owners.map((owner) => owner.user_id) });
  }

  return {
    overview: async ({ user, request }, name) => {
      const id = user.partner_id;
      const [members, invitations, owners, second_factor_required] = await Promise.all([
        listMembers(db, id, { name, limit: MEMBERS_SHOWN + 1 }),
        listInvitations(db, id, isoTime(request.receivedAt)),
        listOwners(db, id),
        isSecondFactorRequired(db, id),
      ]);
      return {
        members: members.slice(0, MEMBERS_SHOWN),
        more: members.length > MEMBERS_SHOWN,
        invitations,
        owners: owners.map((owner) => owner.name),
        second_factor_required,
      };
    },
    find,
    invite: async (visit, invitation) => {
      const made = await changes.invite(visit.user.partner_id, invitation, contextOf(visit));
      return made.ok ? { ok: true, link: `${publicUrl}/dashboard/invitations/${made.token}` } : made;
    },
    withdraw: (visit, invitationId) =>
      changes.withdraw(visit.user.partner_id, invitationId, contextOf(visit)),
    changeRole: (visit, userId, role) =>
      withMember(visit, userId, (member) => changes.changeRole(member, role, contextOf(visit))),
    remove: (visit, userId) =>
      withMember(
        visit,
        userId,
        (member) => changes.remove(member, contextOf(visit)),
        findPresentOrFormerMember,
      ),
    resetPassword: (visit, userId, secondFactor) =>
      withMember(visit, userId, (member) => changes.resetPassword(member, secondFactor, contextOf(visit))),
    requireSecondFactor: (visit, required) =>
      changes.requireSecondFactor(visit.user.partner_id, required, contextOf(visit)),
  };
}

const TOKEN = /^[A-Za-z0-9_-]{43}$/;

function stateOf(
  { completed, accepted_at, withdrawn_at, expires_at, suspended }: InvitationLink,
  now: number,
) {
  if (completed) return 'used';
  if (withdrawn_at !== null) return 'withdrawn';
  if (now >= Date.parse(expires_at)) return accepted_at === null ? 'expired' : 'used';
  if (suspended) return 'suspended';
  // One whose acceptance was cut short goes on for the same user name; the command refuses another one.
  return 'open';
}

export function dashboardInvitations(
  { runtime, limiter, ownWrite }: ApiContext,
  logins: Pick<Logins, 'begin' | 'end'>,
): InvitationDeps {
  const { db } = runtime;
  return {
    find: async (token, { receivedAt }) => {
      const found = TOKEN.test(token) ? await findInvitation(db, invitationDigest(token)) : null;
      return found && { ...found, state: stateOf(found, receivedAt) };
    },
    admitForm: async (invitationId) => {
      const verdict = await limiter.admit(`joining ${invitationId}`, JOIN_FORMS_PER_MINUTE, MINUTE);
      return verdict && retrySeconds(verdict);
    },
    accept: async ({ partner_id, invitation_id, role }, { name, password }, request) => {
      const browser = browserIn(request);
      const joined = await joinTeam(
        { ...runtime, logins, projected: ownWrite(['partners', 'team']) },
        { partner_id, invitation_id, role, name, password, browser },
        { correlationId: request.id, causationId: request.id, at: request.receivedAt },
      );
      return joined.ok ? { ok: true, token: joined.value } : teamRefusal(joined.refusal);
    },
    weakness: weaknessOf,
    logOut: logins.end,
  };
}

export function dashboardSecondFactors(
  { runtime }: ApiContext,
  factors: SecondFactors,
  countWrongCode: (userId: string) => Promise<unknown>,
  contextOf: (visit: Visit) => CommandContext,
): SecondFactorDeps {
  const { store } = runtime;
  return {
    isSetUp: factors.isSetUp,
    countRecoveryCodes: factors.countRecoveryCodes,
    propose: ({ user, csrf }) => factors.propose(user.user_id, user.name, csrf),
    reopen: ({ user, csrf }, proposal) => factors.reopen(user.user_id, user.name, csrf, proposal),
    enable: async (visit, proposal, code) => {
      const { user, csrf, token } = visit;
      const codes = await factors.enable(user.user_id, { proposal, about: csrf, code, token });
      if (codes === 'wrong') await countWrongCode(user.user_id);
      if (typeof codes !== 'string')
        await recordSecondFactor(store, 'EnableSecondFactor', user, contextOf(visit));
      return codes;
    },
    disable: async (visit) => {
      await turnOffSecondFactor(runtime, visit.user, contextOf(visit));
    },
    renewRecoveryCodes: async (visit) => {
      const codes = await factors.renewRecoveryCodes(visit.user.user_id);
      await recordSecondFactor(store, 'RenewRecoveryCodes', visit.user, contextOf(visit));
      return codes;
    },
  };
}

/** The browser of a request, in words; null: not known. */
export const browserIn = (request: ApiRequest): string | null => browserOf(request.header('user-agent'));

export const ownerNames = async (
  db: ApiContext['runtime']['db'],
  partnerId: string,
): Promise<readonly string[]> => (await listOwners(db, partnerId)).map(({ name }) => name);
