import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { searchKey } from '../../domain/kernel/text.ts';
import { roleSchema } from '../../domain/partners/events.ts';

const memberRow = z.object({
  user_id: z.string(),
  partner_id: z.string(),
  name: z.string(),
  role: roleSchema,
  created_at: z.string(),
  /** Whether a code of an app is asked for at each login. */
  second_factor: z.boolean(),
  /** Whether the invitation requires it. */
  second_factor_invited: z.boolean(),
  /** null: never since 0.3.0. */
  logged_in_at: z.string().nullable(),
  used_at: z.string().nullable(),
});
export type MemberRow = z.output<typeof memberRow>;

const MEMBER = sql.fragment`
  m.user_id, m.partner_id, m.name, m.role, m.created_at, f.user_id is not null as second_factor,
  exists (select from read.invitation i where i.user_id = m.user_id and i.second_factor) as second_factor_invited, o.logged_in_at, o.used_at
  from read.team_member m
  left join work.second_factor f using (user_id)
  left join work.user_profile o using (user_id)`;

/** Lists the users of a partner whose names contain `name` (as `searchKey` compares), the earliest first, at most `limit`. */
export async function listMembers(
  db: DatabasePool,
  partnerId: string,
  { name, limit }: { readonly name: string; readonly limit: number },
): Promise<readonly MemberRow[]> {
  const present = sql.fragment`m.partner_id = ${partnerId} and m.removed_at is null`;
  if (name === '')
    return db.any(sql.type(memberRow)`
      select ${MEMBER} where ${present} order by m.created_at, m.user_id limit ${limit}`);
  const names = await db.any(sql.type(memberRow.pick({ user_id: true, name: true }))`
    select m.user_id, m.name from read.team_member m where ${present} order by m.created_at, m.user_id`);
  const wanted = searchKey(name);
  const ids = names.filter((member) => searchKey(member.name).includes(wanted)).map(({ user_id }) => user_id);
  return db.any(sql.type(memberRow)`
    select ${MEMBER}
    where ${present} and m.user_id = any (${sql.array(ids.slice(0, limit), 'uuid')})
    order by m.created_at, m.user_id`);
}

/** `userId` is a UUID. */
export const findMember = (db: DatabasePool, partnerId: string, userId: string): Promise<MemberRow | null> =>
  db.maybeOne(sql.type(memberRow)`
    select ${MEMBER}
    where m.partner_id = ${partnerId} and m.user_id = ${userId} and m.removed_at is null`);

const formerRow = z.object({ user_id: z.string(), partner_id: z.string(), role: roleSchema });

/** Finds a member like `findMember`, and removed ones too, so that a removal that was cut short can be repeated. */
export const findPresentOrFormerMember = (
  db: DatabasePool,
  partnerId: string,
  userId: string,
): Promise<z.output<typeof formerRow> | null> =>
  db.maybeOne(sql.type(formerRow)`
    select user_id, partner_id, role from read.team_member where partner_id = ${partnerId} and user_id = ${userId}`);

const ownerRow = z.object({ user_id: z.string(), name: z.string() });

/** The owners of a partner, in the order of their creation: at most a hundred. */
export const listOwners = (
  db: DatabasePool,
  partnerId: string,
): Promise<readonly z.output<typeof ownerRow>[]> =>
  db.any(sql.type(ownerRow)`
    select user_id, name from read.team_member
    where partner_id = ${partnerId} and removed_at is null and role = 'owner' order by created_at limit 100`);

const settingRow = z.object({ second_factor_required: z.boolean() });

export const isSecondFactorRequired = async (db: DatabasePool, partnerId: string): Promise<boolean> =>
  (
    await db.maybeOne(sql.type(settingRow)`
      select second_factor_required from read.team where partner_id = ${partnerId}`)
  )?.second_factor_required ?? false;

const invitationRow = z.object({
  invitation_id: z.string(),
  role: roleSchema,
  note: z.string(),
  second_factor: z.boolean(),
  made_by: z.string().nullable(),
  made_at: z.string(),
  expires_at: z.string(),
});
export type InvitationRow = z.output<typeof invitationRow>;

/** A partner's invitations that can be accepted at an instant (ISO 8601), the newest first. `made_by`: the owner's name. */
export const listInvitations = (
  db: DatabasePool,
  partnerId: string,
  at: string,
): Promise<readonly InvitationRow[]> =>
  db.any(sql.type(invitationRow)`
    select i.invitation_id, i.role, i.note, i.second_factor, u.name as made_by, i.made_at, i.expires_at
    from read.invitation i left join read.team_member u on u.user_id = i.made_by
    where i.partner_id = ${partnerId} and i.withdrawn_at is null and i.accepted_at is null and i.expires_at > ${at}
    order by i.expires_at desc`);

const linkRow = z.object({
  invitation_id: z.string(),
  partner_id: z.string(),
  partner_name: z.string(),
  role: roleSchema,
  expires_at: z.string(),
  withdrawn_at: z.string().nullable(),
  accepted_at: z.string().nullable(),
  /** Whether the operator has suspended the partner. */
  suspended: z.boolean(),
  /** Whether the user who accepted it has a password: if not, the acceptance was cut short. */
  completed: z.boolean(),
});
export type InvitationLink = z.output<typeof linkRow>;

/** What has become of an invitation. `now` in milliseconds. */
export function invitationState(
  { completed, accepted_at, withdrawn_at, expires_at, suspended }: InvitationLink,
  now: number,
): 'open' | 'used' | 'withdrawn' | 'expired' | 'suspended' {
  if (completed) return 'used';
  if (withdrawn_at !== null) return 'withdrawn';
  if (now >= Date.parse(expires_at)) return accepted_at === null ? 'expired' : 'used';
  if (suspended) return 'suspended';
  // One whose acceptance was cut short goes on for the same user name; the command refuses another one.
  return 'open';
}

/** The invitation with this digest of its token. */
export const findInvitation = (db: DatabasePool, digest: string): Promise<InvitationLink | null> =>
  db.maybeOne(sql.type(linkRow)`
    select i.invitation_id, i.partner_id, p.name as partner_name, i.role, i.expires_at,
           coalesce(i.withdrawn_at, p.deleted_at) as withdrawn_at, i.accepted_at, p.suspended_at is not null as suspended,
           i.accepted_at is not null and (w.user_id is not null or u.removed_at is not null) as completed
    from read.invitation i
    join read.partner p using (partner_id)
    left join work.user_password w on w.user_id = i.user_id
    left join read.team_member u on u.user_id = i.user_id
    where i.digest = ${digest}`);
