/**
 * The team of a partner: one stream for what spans its users, so that two changes at once cannot both pass.
 *
 * The last owner stays. A command brings the owners that the read model knows. Users become owners by events of other streams,
 * but cease to be owners through this stream alone. So the owners that the command brings, less those that this stream has
 * lowered or removed, are owners still, however late the read model is. Of two commands that lower the last two owners at
 * once, the second one is appended at a revision that the first one has taken: it is decided again, and refused.
 *
 * An invitation is open → accepted, or withdrawn, or its time ends. Whose acceptance is appended first has it. The user is
 * created afterwards: the same user may accept again, so that a crash between the two leaves nobody outside. Only owners invite, so
 * the open invitations of a user end with that user's ownership, in the same append.
 */
import { Map as PersistentMap, Set as PersistentSet } from 'immutable';
import { accept, type Decider, type Result, refuse, unreachable } from '../kernel/decider.ts';
import { HOUR, isoTime } from '../kernel/time.ts';
import { type Role, TEAM_PREFIX, type TeamEvent } from './events.ts';

export const INVITATION_MS = 72 * HOUR;
/** Open invitations of a team. */
export const MAX_INVITATIONS = 100;
const MAX_NOTE = 100;

interface Invitation {
  readonly role: Role;
  /** null: an operator, or made before the event had it. */
  readonly made_by: string | null;
  /** Milliseconds. */
  readonly expires_at: number;
  readonly state: 'open' | 'withdrawn' | 'accepted';
  readonly user_id: string | null;
}

export interface Team {
  /** Roles that were changed here, by user. */
  readonly roles: PersistentMap<string, Role>;
  readonly removed: PersistentSet<string>;
  readonly invitations: PersistentMap<string, Invitation>;
  readonly second_factor_required: boolean;
  readonly with_second_factor: PersistentSet<string>;
}

/** A user of the team, as the read model knows it, and all owners. */
interface AboutMember {
  readonly user_id: string;
  readonly role: Role;
  readonly owners: readonly string[];
}

export type SecondFactorChange = 'EnableSecondFactor' | 'DisableSecondFactor' | 'RenewRecoveryCodes';

type Each =
  | (AboutMember & { readonly type: 'ChangeRole'; readonly wanted: Role })
  | (AboutMember & { readonly type: 'RemoveMember' })
  | {
      readonly type: 'Invite';
      readonly invitation_id: string;
      readonly role: Role;
      /** The user who invites. */
      readonly made_by: string | null;
      readonly note: string;
      readonly second_factor: boolean;
      readonly digest: string;
    }
  | { readonly type: 'WithdrawInvitation'; readonly invitation_id: string }
  | { readonly type: 'AcceptInvitation'; readonly invitation_id: string; readonly user_id: string }
  | { readonly type: 'RequireSecondFactor'; readonly required: boolean }
  | { readonly type: SecondFactorChange; readonly user_id: string };

export type TeamCommand = Each & { readonly partner_id: string; readonly at: number };

export type TeamRefusal =
  | 'last_owner'
  | 'user_not_found'
  | 'owner_required'
  | 'invalid_note'
  | 'invitation_limit'
  | 'invitation_not_found'
  | 'invitation_used'
  | 'invitation_withdrawn'
  | 'invitation_expired';

export const teamDecider: Decider<Team, TeamCommand, TeamEvent, TeamRefusal> = {
  initial: {
    roles: PersistentMap(),
    removed: PersistentSet(),
    invitations: PersistentMap(),
    second_factor_required: false,
    with_second_factor: PersistentSet(),
  },

  decide(command, team) {
    const { type, partner_id, at } = command;
    switch (type) {
      case 'ChangeRole':
      case 'RemoveMember':
        return decideMember(command, team);
      case 'Invite':
        return invite(command, team);
      case 'WithdrawInvitation':
        return withdraw(command, team);
      case 'AcceptInvitation':
        return acceptInvitation(command, team);
      case 'RequireSecondFactor': {
        const { required } = command;
        if (required === team.second_factor_required) return accept([]);
        return accept([
          {
            type: 'partners.SecondFactorRequired.v1',
            data: { partner_id, required, changed_at: isoTime(at) },
          },
        ]);
      }
      case 'EnableSecondFactor':
      case 'DisableSecondFactor':
      case 'RenewRecoveryCodes':
        return secondFactor(command, team);
      default:
        return unreachable(type);
    }
  },

  evolve(team, { type, data }) {
    switch (type) {
      case 'partners.RoleChanged.v1':
        return { ...team, roles: team.roles.set(data.user_id, data.role) };
      case 'partners.MemberRemoved.v1':
        return { ...team, removed: team.removed.add(data.user_id) };
      case 'partners.InvitationMade.v1': {
        const { role, made_by } = data;
        const expires_at = Date.parse(data.expires_at);
        const made = { role, made_by, expires_at, state: 'open', user_id: null } as const;
        return { ...team, invitations: team.invitations.set(data.invitation_id, made) };
      }
      case 'partners.InvitationWithdrawn.v1':
        return withInvitation(team, data.invitation_id, { state: 'withdrawn' });
      case 'partners.InvitationAccepted.v1':
        return withInvitation(team, data.invitation_id, { state: 'accepted', user_id: data.user_id });
      case 'partners.SecondFactorRequired.v1':
        return { ...team, second_factor_required: data.required };
      case 'partners.SecondFactorEnabled.v1':
        return { ...team, with_second_factor: team.with_second_factor.add(data.user_id) };
      case 'partners.SecondFactorDisabled.v1':
        return { ...team, with_second_factor: team.with_second_factor.delete(data.user_id) };
      case 'partners.RecoveryCodesRenewed.v1':
        return team;
      default:
        return unreachable(type);
    }
  },
};

type Decision = Result<readonly TeamEvent[], TeamRefusal>;
type Command<Type extends TeamCommand['type']> = Extract<TeamCommand, { readonly type: Type }>;

/** Whether a user that the read model has as an owner still is one here. */
const isOwner = ({ roles, removed }: Team, user_id: string): boolean =>
  !removed.has(user_id) && (roles.get(user_id) ?? 'owner') === 'owner';

function decideMember(command: Command<'ChangeRole'> | Command<'RemoveMember'>, team: Team): Decision {
  const { roles, removed } = team;
  const { type, partner_id, user_id, owners, at } = command;
  const isRemoval = type === 'RemoveMember';
  if (removed.has(user_id)) return isRemoval ? accept([]) : refuse('user_not_found');
  const before = roles.get(user_id) ?? command.role;
  if (!isRemoval && command.wanted === before) return accept([]);
  if (before === 'owner' && !owners.some((id) => id !== user_id && isOwner(team, id)))
    return refuse('last_owner');
  const of = { user_id, partner_id };
  const staysOwner = !isRemoval && command.wanted === 'owner';
  return accept([
    isRemoval
      ? {
          type: 'partners.MemberRemoved.v1',
          data: { ...of, role: before, removed_at: isoTime(at) },
        }
      : {
          type: 'partners.RoleChanged.v1',
          data: { ...of, before, role: command.wanted, changed_at: isoTime(at) },
        },
    ...(staysOwner ? [] : withdrawalsOf(team, command)),
  ]);
}

/** Withdraws the open invitations that the user has made. */
const withdrawalsOf = (
  { invitations }: Team,
  { partner_id, user_id, at }: Pick<Command<'RemoveMember'>, 'partner_id' | 'user_id' | 'at'>,
): readonly TeamEvent[] =>
  [...invitations]
    .filter(([, one]) => one.made_by === user_id && one.state === 'open' && one.expires_at > at)
    .map(([invitation_id, { role }]) => withdrawal({ partner_id, invitation_id, at }, role));

const withdrawal = (
  { partner_id, invitation_id, at }: Omit<Command<'WithdrawInvitation'>, 'type'>,
  role: Role,
): TeamEvent => ({
  type: 'partners.InvitationWithdrawn.v1',
  data: { partner_id, invitation_id, role, withdrawn_at: isoTime(at) },
});

function invite(command: Command<'Invite'>, team: Team): Decision {
  const { invitations } = team;
  const { partner_id, invitation_id, role, made_by, note, second_factor, digest, at } = command;
  if (invitations.has(invitation_id)) return accept([]);
  // The page has asked the read model, which an append may have overtaken.
  if (made_by !== null && !isOwner(team, made_by)) return refuse('owner_required');
  if ([...note].length > MAX_NOTE || /\p{Cc}|\p{Cs}/u.test(note)) return refuse('invalid_note');
  const open = [...invitations.values()].filter(
    ({ state, expires_at }) => state === 'open' && expires_at > at,
  );
  if (open.length >= MAX_INVITATIONS) return refuse('invitation_limit');
  const data = {
    partner_id,
    invitation_id,
    role,
    made_by,
    note,
    second_factor,
    digest,
    made_at: isoTime(at),
  };
  return accept([
    {
      type: 'partners.InvitationMade.v1',
      data: { ...data, expires_at: isoTime(at + INVITATION_MS) },
    },
  ]);
}

function withdraw({ partner_id, invitation_id, at }: Command<'WithdrawInvitation'>, team: Team): Decision {
  const invitation = team.invitations.get(invitation_id);
  if (invitation === undefined) return refuse('invitation_not_found');
  const { state, role } = invitation;
  if (state === 'withdrawn') return accept([]);
  if (state === 'accepted') return refuse('invitation_used');
  return accept([withdrawal({ partner_id, invitation_id, at }, role)]);
}

function acceptInvitation(command: Command<'AcceptInvitation'>, { invitations }: Team): Decision {
  const { partner_id, invitation_id, user_id, at } = command;
  const invitation = invitations.get(invitation_id);
  if (invitation === undefined) return refuse('invitation_not_found');
  const { state, role, expires_at } = invitation;
  if (state === 'withdrawn') return refuse('invitation_withdrawn');
  if (state === 'accepted' && invitation.user_id !== user_id) return refuse('invitation_used');
  if (at >= expires_at) return refuse(state === 'accepted' ? 'invitation_used' : 'invitation_expired');
  if (state === 'accepted') return accept([]);
  return accept([
    {
      type: 'partners.InvitationAccepted.v1',
      data: { user_id, partner_id, invitation_id, role, accepted_at: isoTime(at) },
    },
  ]);
}

/** The factor itself is kept outside of events: these only tell what was done. */
function secondFactor(
  { type, partner_id, user_id, at }: Command<SecondFactorChange>,
  { with_second_factor }: Team,
): Decision {
  const of = { user_id, partner_id };
  const time = isoTime(at);
  switch (type) {
    case 'EnableSecondFactor':
      if (with_second_factor.has(user_id)) return accept([]);
      return accept([{ type: 'partners.SecondFactorEnabled.v1', data: { ...of, enabled_at: time } }]);
    case 'DisableSecondFactor':
      if (!with_second_factor.has(user_id)) return accept([]);
      return accept([{ type: 'partners.SecondFactorDisabled.v1', data: { ...of, disabled_at: time } }]);
    case 'RenewRecoveryCodes':
      return accept([{ type: 'partners.RecoveryCodesRenewed.v1', data: { ...of, renewed_at: time } }]);
    default:
      return unreachable(type);
  }
}

function withInvitation(
  team: Team,
  id: string,
  change: Pick<Invitation, 'state'> & Partial<Invitation>,
): Team {
  const before = team.invitations.get(id);
  if (before === undefined) return team;
  return { ...team, invitations: team.invitations.set(id, { ...before, ...change }) };
}

export const teamStream = (partnerId: string): string => `${TEAM_PREFIX}${partnerId}`;
