import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { team } from '../../projections/partners/team.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([team]);
});
afterAll(() => stack.close());

const at = '2026-03-01T12:00:00.000Z';
const [partner_id, ADA, BEN] = [randomUUID(), randomUUID(), randomUUID()];
const invitation_id = randomUUID();

const append = async (stream: string, type: string, data: object) => {
  const metadata = { $correlationId: 'a', $causationId: 'a', at, user_id: ADA };
  await stack.store.append(stream, 'any', [
    { id: randomUUID(), type: `partners.${type}.v1`, data, metadata },
  ]);
};
const onTeam = (type: string, data: object) => append(`team-${partner_id}`, type, { partner_id, ...data });

it('shows users with their latest roles; one of before 0.3.0 is an owner', async () => {
  const created = { partner_id, created_at: at };
  await append(`user-${ADA}`, 'UserCreated', { ...created, user_id: ADA, name: 'Ada' });
  await append(`user-${BEN}`, 'UserCreated', { ...created, user_id: BEN, name: 'Ben', role: 'member' });
  await onTeam('RoleChanged', { user_id: BEN, before: 'member', role: 'read-only', changed_at: at });
  await onTeam('MemberRemoved', { user_id: BEN, role: 'read-only', removed_at: at });
  const later = '2026-03-02T12:00:00.000Z';
  await append(`user-${BEN}`, 'UserRemoved', { user_id: BEN, partner_id, removed_at: later });
  await onTeam('SecondFactorRequired', { required: true, changed_at: at });
  await stack.caughtUp([team]);
  const members = await stack.rows('select name, role, removed_at from read.team_member order by name');
  expect(members).toEqual([
    { name: 'Ada', role: 'owner', removed_at: null },
    { name: 'Ben', role: 'read-only', removed_at: new Date(at) },
  ]);
  expect(await stack.rows('select * from read.team')).toEqual([{ partner_id, second_factor_required: true }]);
});

it('shows invitations with who made them, and what became of them', async () => {
  const digest = 'ab'.repeat(32);
  const made = { invitation_id, role: 'member', note: 'Cas', digest, made_at: at, expires_at: at };
  await onTeam('InvitationMade', made);
  await onTeam('InvitationAccepted', { invitation_id, user_id: BEN, role: 'member', accepted_at: at });
  await stack.caughtUp([team]);
  expect(await stack.rows('select made_by, digest, user_id, accepted_at from read.invitation')).toEqual([
    { made_by: ADA, digest, user_id: BEN, accepted_at: new Date(at) },
  ]);
});
