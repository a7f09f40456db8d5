import type pg from 'pg';
import { z } from 'zod';
import { unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { type TeamEvent, teamEvents, type UserEvent, userEvents } from '../../domain/partners/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import type { Projection } from '../projection.ts';

/** Projects the users' roles, the invitations, and what owners require of their team. Row by row, because these events are rare. */
export const team: Projection = {
  name: 'team',
  tables: ['team_member', 'team', 'invitation'],
  types: Object.keys({ ...userEvents, ...teamEvents }),
  async apply(events, db) {
    for (const stored of events) {
      const ofUser = readEvent(userEvents, stored);
      if (ofUser) await applyToUser(ofUser, db);
      const ofTeam = readEvent(teamEvents, stored);
      if (ofTeam) await applyToTeam(ofTeam, stored, db);
    }
  },
};

async function applyToUser({ type, data }: UserEvent, db: pg.ClientBase): Promise<void> {
  switch (type) {
    case 'partners.UserCreated.v1':
      // The role too: a migration has made rows of users whom a process of the release before may have added meanwhile.
      await db.query(
        `insert into team_member (user_id, partner_id, name, role, created_at) values ($1, $2, $3, $4, $5)
         on conflict (user_id) do nothing`,
        [data.user_id, data.partner_id, data.name, data.role, data.created_at],
      );
      return;
    case 'partners.UserRemoved.v1':
      return remove(data.user_id, data.removed_at, db);
    case 'partners.UserReleased.v1':
      await db.query('delete from team_member where user_id = $1', [data.user_id]);
      return;
    case 'partners.UserPasswordReset.v1':
    case 'partners.UserPasswordChanged.v1':
      return;
    default:
      unreachable(type);
  }
}

/** The first removal counts: the team's event comes before the user's. */
async function remove(userId: string, at: string, db: pg.ClientBase): Promise<void> {
  await db.query('update team_member set removed_at = coalesce(removed_at, $2) where user_id = $1', [
    userId,
    at,
  ]);
}

async function applyToTeam(
  { type, data }: TeamEvent,
  { metadata }: RecordedEvent,
  db: pg.ClientBase,
): Promise<void> {
  switch (type) {
    case 'partners.RoleChanged.v1':
      await db.query('update team_member set role = $2 where user_id = $1', [data.user_id, data.role]);
      return;
    case 'partners.MemberRemoved.v1':
      return remove(data.user_id, data.removed_at, db);
    case 'partners.InvitationMade.v1':
      await db.query(
        `insert into invitation (invitation_id, partner_id, digest, role, note, made_by, made_at, expires_at, second_factor)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing`,
        [
          data.invitation_id,
          data.partner_id,
          data.digest,
          data.role,
          data.note,
          z.uuid().safeParse(metadata.user_id).data ?? null,
          data.made_at,
          data.expires_at,
          data.second_factor,
        ],
      );
      return;
    case 'partners.InvitationWithdrawn.v1':
      await db.query('update invitation set withdrawn_at = $2 where invitation_id = $1', [
        data.invitation_id,
        data.withdrawn_at,
      ]);
      return;
    case 'partners.InvitationAccepted.v1':
      await db.query('update invitation set accepted_at = $2, user_id = $3 where invitation_id = $1', [
        data.invitation_id,
        data.accepted_at,
        data.user_id,
      ]);
      return;
    case 'partners.SecondFactorRequired.v1':
      await db.query(
        `insert into team (partner_id, second_factor_required) values ($1, $2)
         on conflict (partner_id) do update set second_factor_required = excluded.second_factor_required`,
        [data.partner_id, data.required],
      );
      return;
    case 'partners.SecondFactorEnabled.v1':
    case 'partners.SecondFactorDisabled.v1':
    case 'partners.RecoveryCodesRenewed.v1':
      return;
    default:
      unreachable(type);
  }
}
