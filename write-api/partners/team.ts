import type { CommandContext } from '../../commands/handle.ts';
import {
  changeRole,
  invite,
  type MemberOfTeam,
  removeMember,
  requireSecondFactor,
  withdrawInvitation,
} from '../../commands/partners/manage-team.ts';
import { changeUser } from '../../commands/partners/manage-user.ts';
import type { Role } from '../../domain/partners/events.ts';
import { MAX_INVITATIONS, type TeamRefusal } from '../../domain/partners/team.ts';
import type { UserRefusal } from '../../domain/partners/user.ts';
import type { Position } from '../../event-store/port.ts';
import type { ProcessorDeps } from '../../processors/deps.ts';
import { forgetUser, giveFirstPassword } from '../../processors/partners/passwords.ts';
import { turnOffSecondFactor } from '../../processors/partners/second-factor.ts';

type Refusal = TeamRefusal | UserRefusal | 'rate_limit';

const GONE = 'Ask an owner of the team for a new one.';

const MESSAGES: Record<Refusal, string> = {
  last_owner: 'A team keeps at least one owner. Make another user an owner first.',
  user_not_found: 'There is no such user in the team. Reload the list.',
  owner_required: 'You are no owner of the team any more. Ask one of its owners.',
  invalid_note: 'A note has at most 100 characters.',
  invitation_limit: `A team has at most ${MAX_INVITATIONS} open invitations. Withdraw one first.`,
  invitation_not_found: 'There is no such invitation. Reload the list.',
  invitation_used: `The invitation has been used. ${GONE}`,
  invitation_withdrawn: `The invitation was withdrawn. ${GONE}`,
  invitation_expired: `The invitation has expired. ${GONE}`,
  invalid_name:
    'This user name cannot be used. Choose another one: up to 100 characters of one script, without invisible ones.',
  user_exists: 'This user name is taken. Choose another one.',
  rate_limit: 'The team was changed too often today. Try again tomorrow.',
};

export function teamRefusal(code: Refusal) {
  const status =
    code === 'rate_limit' ? 429 : code.endsWith('not_found') ? 404 : code.startsWith('invalid') ? 400 : 409;
  return { ok: false, status, code, message: MESSAGES[code] } as const;
}

interface TeamDeps extends ProcessorDeps {
  /** Waits until the change can be read. */
  readonly projected: (position: Position | null) => Promise<unknown>;
  /** Counts a change of a partner. @returns whether it may be made */
  readonly admitChange: (partnerId: string) => Promise<boolean>;
}

/** Changes a team for its owners. */
export function createTeamChanges(deps: TeamDeps) {
  const { store, pool, projected, admitChange } = deps;

  const done = async (position: Position | null) => {
    await projected(position);
    return { ok: true } as const;
  };

  return {
    invite: async (
      partner_id: string,
      invitation: { readonly role: Role; readonly note: string; readonly second_factor: boolean },
      context: CommandContext,
    ) => {
      if (!(await admitChange(partner_id))) return teamRefusal('rate_limit');
      const made = await invite(store, { partner_id, ...invitation }, context);
      if (!made.ok) return teamRefusal(made.refusal);
      await projected(made.value.position);
      return { ok: true, token: made.value.token } as const;
    },

    withdraw: async (partner_id: string, invitation_id: string, context: CommandContext) => {
      const withdrawn = await withdrawInvitation(store, partner_id, invitation_id, context);
      return withdrawn.ok ? done(withdrawn.value.position) : teamRefusal(withdrawn.refusal);
    },

    changeRole: async (member: MemberOfTeam, role: Role, context: CommandContext) => {
      if (!(await admitChange(member.partner_id))) return teamRefusal('rate_limit');
      const changed = await changeRole(store, member, role, context);
      return changed.ok ? done(changed.value.position) : teamRefusal(changed.refusal);
    },

    remove: async (member: MemberOfTeam, context: CommandContext) => {
      const removed = await removeMember(store, member, context);
      if (!removed.ok) return teamRefusal(removed.refusal);
      await forgetUser(pool, member.user_id);
      return done(removed.value.position);
    },

    /** `secondFactor`: turns it off too. */
    resetPassword: async (
      { partner_id, user_id }: MemberOfTeam,
      secondFactor: boolean,
      context: CommandContext,
    ) => {
      if (!(await admitChange(partner_id))) return teamRefusal('rate_limit');
      const reset = await changeUser(store, 'ResetPassword', user_id, context);
      if (!reset.ok) return teamRefusal(reset.refusal);
      if (secondFactor) await turnOffSecondFactor(deps, { partner_id, user_id }, context);
      return { ok: true, password: await giveFirstPassword(deps, user_id) } as const;
    },

    requireSecondFactor: async (partner_id: string, required: boolean, context: CommandContext) => {
      if (!(await admitChange(partner_id))) return teamRefusal('rate_limit');
      const changed = await requireSecondFactor(store, partner_id, required, context);
      return changed.ok ? done(changed.value.position) : teamRefusal(changed.refusal);
    },
  };
}

export type TeamChanges = ReturnType<typeof createTeamChanges>;
