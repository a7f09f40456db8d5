import { createHash, randomBytes } from 'node:crypto';
import { accept, type Result, refuse } from '../../domain/kernel/decider.ts';
import { composed } from '../../domain/kernel/text.ts';
import { type Role, type TeamEvent, teamEvents } from '../../domain/partners/events.ts';
import {
  type SecondFactorChange,
  type Team,
  type TeamCommand,
  type TeamRefusal,
  teamDecider,
  teamStream,
} from '../../domain/partners/team.ts';
import type { UserRefusal } from '../../domain/partners/user.ts';
import { userNameIsValid } from '../../domain/partners/user-name.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { type Aggregate, type CommandContext, handle, load, newId } from '../handle.ts';
import { changeUser, createUser, readUser, userIdOf } from './manage-user.ts';

const aggregate: Aggregate<Team, TeamCommand, TeamEvent, TeamRefusal> = {
  schemas: teamEvents,
  decider: teamDecider,
};

type Outcome<Refusal extends string = TeamRefusal> = Promise<
  Result<{ readonly position: Position | null }, Refusal>
>;

/** A user of the team, as the read model knows it, and all owners. */
export interface MemberOfTeam {
  readonly partner_id: string;
  readonly user_id: string;
  readonly role: Role;
  readonly owners: readonly string[];
}

const run = (store: EventStore, command: TeamCommand, context: CommandContext): Outcome =>
  handle(store, aggregate, teamStream(command.partner_id), command, context);

export const changeRole = (
  store: EventStore,
  member: MemberOfTeam,
  wanted: Role,
  context: CommandContext,
): Outcome => run(store, { type: 'ChangeRole', ...member, wanted, at: context.at }, context);

/** Removes a user from the team and ends the user. A repeat after a crash does what is left. */
export async function removeMember(
  store: EventStore,
  member: MemberOfTeam,
  context: CommandContext,
): Outcome<TeamRefusal | UserRefusal> {
  const removed = await run(store, { type: 'RemoveMember', ...member, at: context.at }, context);
  return removed.ok ? changeUser(store, 'RemoveUser', member.user_id, context) : removed;
}

export const requireSecondFactor = (
  store: EventStore,
  partner_id: string,
  required: boolean,
  context: CommandContext,
): Outcome => run(store, { type: 'RequireSecondFactor', partner_id, required, at: context.at }, context);

/** Records a change of a user's second factor, which is kept elsewhere, never in events. */
export const recordSecondFactor = (
  store: EventStore,
  type: SecondFactorChange,
  { partner_id, user_id }: { readonly partner_id: string; readonly user_id: string },
  context: CommandContext,
): Outcome => run(store, { type, partner_id, user_id, at: context.at }, context);

export const invitationDigest = (token: string): string => createHash('sha256').update(token).digest('hex');

/** Makes an invitation. @returns the token of its link, which is stored nowhere */
export async function invite(
  store: EventStore,
  {
    partner_id,
    role,
    note,
    second_factor = false,
  }: {
    readonly partner_id: string;
    readonly role: Role;
    readonly note: string;
    readonly second_factor?: boolean;
  },
  context: CommandContext,
): Promise<Result<{ readonly token: string; readonly position: Position | null }, TeamRefusal>> {
  const token = randomBytes(32).toString('base64url');
  const digest = invitationDigest(token);
  const made_by = context.userId ?? null;
  const command = {
    type: 'Invite',
    partner_id,
    invitation_id: newId(),
    role,
    made_by,
    note,
    second_factor,
    digest,
  } as const;
  const made = await run(store, { ...command, at: context.at }, context);
  return made.ok ? accept({ token, position: made.value.position }) : made;
}

export const withdrawInvitation = (
  store: EventStore,
  partner_id: string,
  invitation_id: string,
  context: CommandContext,
): Outcome => run(store, { type: 'WithdrawInvitation', partner_id, invitation_id, at: context.at }, context);

interface Acceptance {
  readonly partner_id: string;
  readonly invitation_id: string;
  readonly role: Role;
  readonly name: string;
}

/**
 * Accepts an invitation under a new user name, and creates the user. The same link with the same name goes on where a crash ended
 * it; a name that belongs to somebody else does not use the invitation up.
 */
export async function acceptInvitation(
  store: EventStore,
  { partner_id, invitation_id, role, name }: Acceptance,
  context: CommandContext,
): Promise<
  Result<{ readonly user_id: string; readonly position: Position | null }, TeamRefusal | UserRefusal>
> {
  if (!userNameIsValid(composed(name))) return refuse('invalid_name');
  const user_id = userIdOf(name);
  const user = await readUser(store, user_id);
  const exists = user.partner_id !== null;
  if (exists) {
    const { invitations } = (await load(store, aggregate, teamStream(partner_id))).state;
    const isOfThis = invitations.get(invitation_id)?.user_id === user_id;
    // Whether another partner has a user of this name is not told: the name is refused as one that nobody may have.
    if (user.partner_id !== partner_id) return refuse('invalid_name');
    if (!isOfThis || user.removed) return refuse('user_exists');
  }
  const by = { ...context, partnerId: partner_id, userId: user_id };
  const command = { type: 'AcceptInvitation', partner_id, invitation_id, user_id, at: context.at } as const;
  const accepted = await run(store, command, by);
  if (!accepted.ok) return accepted;
  const { position } = accepted.value;
  return exists ? accept({ user_id, position }) : createUser(store, { partner_id, name, role }, by);
}
