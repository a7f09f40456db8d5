import type { CommandContext } from '../../commands/handle.ts';
import { acceptInvitation } from '../../commands/partners/manage-team.ts';
import { accept, type Result, refuse } from '../../domain/kernel/decider.ts';
import type { Role } from '../../domain/partners/events.ts';
import type { TeamRefusal } from '../../domain/partners/team.ts';
import type { UserRefusal } from '../../domain/partners/user.ts';
import type { Position } from '../../event-store/port.ts';
import { hashPassword } from '../../platform/crypto/passwords.ts';
import type { ProcessorDeps } from '../deps.ts';
import type { Logins } from './logins.ts';
import { setInitialPassword } from './passwords.ts';

interface Joining {
  readonly partner_id: string;
  readonly invitation_id: string;
  readonly role: Role;
  readonly name: string;
  readonly password: string;
  /** In words; null: not known. */
  readonly browser: string | null;
}

interface JoiningDeps extends ProcessorDeps {
  readonly logins: Pick<Logins, 'begin'>;
  /** Waits until the new user can be read. */
  readonly projected: (position: Position | null) => Promise<unknown>;
}

/**
 * Turns an invitation into a user with a password, and logs the user in. Where a crash ends it, the same link and user name go on,
 * until the user has a password.
 * @returns the login's token
 * @throws WorkRefused while too many passwords are checked: nothing was done
 */
export async function joinTeam(
  { store, pool, clock, logins, projected }: JoiningDeps,
  { password, browser, ...invitation }: Joining,
  context: CommandContext,
): Promise<Result<string, TeamRefusal | UserRefusal>> {
  const hash = await hashPassword(password);
  const accepted = await acceptInvitation(store, invitation, context);
  if (!accepted.ok) return accepted;
  const { user_id: userId, position } = accepted.value;
  if (!(await setInitialPassword(pool, { userId, hash, at: clock.now() }))) return refuse('invitation_used');
  await projected(position);
  const token = await logins.begin(userId, hash, { browser, withSecondFactor: false });
  return token === null ? refuse('invitation_used') : accept(token);
}
