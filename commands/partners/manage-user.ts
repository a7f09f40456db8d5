import { v5 as uuidOf } from 'uuid';
import type { Result } from '../../domain/kernel/decider.ts';
import { composed } from '../../domain/kernel/text.ts';
import { type Role, type UserEvent, userEvents } from '../../domain/partners/events.ts';
import {
  type User,
  type UserCommand,
  type UserRefusal,
  userDecider,
  userStream,
} from '../../domain/partners/user.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { type Aggregate, type CommandContext, handle, type Loaded, load } from '../handle.ts';

const aggregate: Aggregate<User, UserCommand, UserEvent, UserRefusal> = {
  schemas: userEvents,
  decider: userDecider,
};

/** Namespace of user ids: the id derives from the name, which makes names unique. */
const USERS = '6b6f7f0a-6a0e-4b53-9f41-0c6a0f2f8f11';

/** Returns the id of the user with this name, ignoring case. */
export const userIdOf = (name: string): string => uuidOf(composed(name).toLowerCase(), USERS);

type Outcome = Promise<Result<{ readonly user_id: string; readonly position: Position | null }, UserRefusal>>;

/** Reads the last event alone, because a script may change a password all day. */
async function loadUser(store: EventStore, stream: string): Promise<Loaded<User>> {
  for await (const { revision } of store.readStream(stream, { direction: 'backwards', limit: 1 })) {
    const before = { state: userDecider.initial, revision: revision - 1 };
    return load(store, aggregate, stream, before);
  }
  return { state: userDecider.initial, revision: null };
}

async function run(store: EventStore, command: UserCommand, context: CommandContext): Outcome {
  const { user_id } = command;
  const stream = userStream(user_id);
  const known = await loadUser(store, stream);
  const handled = await handle(store, aggregate, stream, command, context, known);
  return handled.ok ? { ok: true, value: { user_id, position: handled.value.position } } : handled;
}

/** Reads what is known of the user with this id. */
export const readUser = async (store: EventStore, userId: string): Promise<User> =>
  (await loadUser(store, userStream(userId))).state;

interface NewUser {
  readonly partner_id: string;
  readonly name: string;
  readonly role?: Role;
}

/**
 * Creates a dashboard user under the normalized name, an owner unless another role is given; refused if the name is or was taken.
 */
export function createUser(
  store: EventStore,
  { partner_id, name: given, role = 'owner' }: NewUser,
  context: CommandContext,
): Outcome {
  const [user_id, name] = [userIdOf(given), composed(given)];
  return run(store, { type: 'CreateUser', user_id, partner_id, name, role, at: context.at }, context);
}

/** Ends a user of a deleted partner and frees the name. */
export const releaseUser = (
  store: EventStore,
  { user_id, partner_id }: { readonly user_id: string; readonly partner_id: string },
  context: CommandContext,
): Outcome => run(store, { type: 'ReleaseUser', user_id, partner_id, at: context.at }, context);

/** Records a change of a user. Passwords are stored elsewhere, never in events. */
export const changeUser = (
  store: EventStore,
  type: 'ResetPassword' | 'ChangePassword' | 'RemoveUser',
  userId: string,
  context: CommandContext,
): Outcome => run(store, { type, user_id: userId, at: context.at }, context);
