import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { isoTime } from '../kernel/time.ts';
import { type Role, USER_PREFIX, type UserEvent } from './events.ts';
import { userNameIsValid } from './user-name.ts';

export interface User {
  /** null: no user has this name, or the partner of the one who had it was deleted. */
  readonly partner_id: string | null;
  readonly removed: boolean;
}

interface OfUser {
  readonly user_id: string;
  readonly at: number;
}

export type UserCommand =
  | (OfUser & {
      readonly type: 'CreateUser';
      readonly partner_id: string;
      readonly name: string;
      readonly role: Role;
    })
  | (OfUser & { readonly type: 'ResetPassword' | 'ChangePassword' | 'RemoveUser' })
  /** `partner_id`: the deleted partner; a user of another one stays. */
  | (OfUser & { readonly type: 'ReleaseUser'; readonly partner_id: string });

export type UserRefusal = 'invalid_name' | 'user_exists' | 'user_not_found';

/** Decides the life of one dashboard user. A removed user's name stays taken until the partner is deleted. */
export const userDecider: Decider<User, UserCommand, UserEvent, UserRefusal> = {
  initial: { partner_id: null, removed: false },

  decide(command, { partner_id, removed }) {
    const { type, user_id, at } = command;
    if (type === 'CreateUser') {
      if (!userNameIsValid(command.name)) return refuse('invalid_name');
      if (partner_id !== null) return refuse('user_exists');
      const { name, role } = command;
      const data = { user_id, partner_id: command.partner_id, name, created_at: isoTime(at), role };
      return accept([{ type: 'partners.UserCreated.v1', data }]);
    }
    if (type === 'ReleaseUser') {
      if (partner_id !== command.partner_id) return accept([]);
      const data = { user_id, partner_id, released_at: isoTime(at) };
      return accept([{ type: 'partners.UserReleased.v1', data }]);
    }
    if (partner_id === null) return refuse('user_not_found');
    if (removed) return type === 'RemoveUser' ? accept([]) : refuse('user_not_found');
    const of = { user_id, partner_id };
    switch (type) {
      case 'ResetPassword':
        return accept([{ type: 'partners.UserPasswordReset.v1', data: { ...of, reset_at: isoTime(at) } }]);
      case 'ChangePassword':
        return accept([
          { type: 'partners.UserPasswordChanged.v1', data: { ...of, changed_at: isoTime(at) } },
        ]);
      case 'RemoveUser':
        return accept([{ type: 'partners.UserRemoved.v1', data: { ...of, removed_at: isoTime(at) } }]);
      default:
        return unreachable(type);
    }
  },

  /** Each event alone has the whole state. */
  evolve(_state, { type, data: { partner_id } }) {
    switch (type) {
      case 'partners.UserCreated.v1':
      case 'partners.UserPasswordReset.v1':
      case 'partners.UserPasswordChanged.v1':
        return { partner_id, removed: false };
      case 'partners.UserRemoved.v1':
        return { partner_id, removed: true };
      case 'partners.UserReleased.v1':
        return { partner_id: null, removed: false };
      default:
        return unreachable(type);
    }
  },
};

export const userStream = (userId: string): string => `${USER_PREFIX}${userId}`;
