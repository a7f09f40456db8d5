import { describe, expect, it } from 'vitest';
import { HOUR } from '../../domain/kernel/time.ts';
import type { Role, TeamEvent } from '../../domain/partners/events.ts';
import { INVITATION_MS, MAX_INVITATIONS, type TeamCommand, teamDecider } from '../../domain/partners/team.ts';
import { given } from '../domain/deciding.ts';
import { ANNA, AT } from '../lookup/lookup-events.ts';

const at = new Date(AT).toISOString();
const partner_id = ANNA;
const [ADA, BEN, CAS] = [1, 2, 3].map((n) => `${n}f0c3f0e-3f0e-4f0e-8f0e-3f0e3f0e3f0e`) as [
  string,
  string,
  string,
];
const invitation_id = '019aaaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee';
const digest = 'ab'.repeat(32);

const changed = (user_id: string, before: Role, role: Role): TeamEvent => ({
  type: 'partners.RoleChanged.v1',
  data: { user_id, partner_id, before, role, changed_at: at },
});
const removed = (user_id: string, role: Role = 'owner'): TeamEvent => ({
  type: 'partners.MemberRemoved.v1',
  data: { user_id, partner_id, role, removed_at: at },
});
const change = (user_id: string, role: Role, wanted: Role, owners: readonly string[]) =>
  ({ type: 'ChangeRole', partner_id, user_id, role, wanted, owners, at: AT }) as const;
const remove = (user_id: string, role: Role, owners: readonly string[]) =>
  ({ type: 'RemoveMember', partner_id, user_id, role, owners, at: AT }) as const;

describe('the owners of a team', () => {
  it('may be lowered and removed while another one stays', () => {
    given(teamDecider, [])
      .when(change(ADA, 'owner', 'member', [ADA, BEN]))
      .thenEvents([changed(ADA, 'owner', 'member')]);
    given(teamDecider, [])
      .when(remove(ADA, 'owner', [ADA, BEN]))
      .thenEvents([removed(ADA)]);
  });

  it.each(['member', 'read-only'] as const)('keep a last one, who cannot become %s', (wanted) => {
    given(teamDecider, [])
      .when(change(ADA, 'owner', wanted, [ADA]))
      .thenRefused('last_owner');
  });

  it('keep a last one, who cannot be removed', () => {
    given(teamDecider, [])
      .when(remove(ADA, 'owner', [ADA]))
      .thenRefused('last_owner');
  });

  it('keep a last one where the read model still shows others who were lowered or removed', () => {
    const events = [changed(BEN, 'owner', 'member'), removed(CAS)];
    given(teamDecider, events)
      .when(remove(ADA, 'owner', [ADA, BEN, CAS]))
      .thenRefused('last_owner');
    given(teamDecider, events)
      .when(change(ADA, 'owner', 'member', [ADA, BEN, CAS]))
      .thenRefused('last_owner');
  });

  it('keep a last one where the read model does not show the latest role of the user', () => {
    given(teamDecider, [changed(ADA, 'member', 'owner')])
      .when(remove(ADA, 'member', [ADA]))
      .thenRefused('last_owner');
  });

  it('include one that was lowered and raised again', () => {
    given(teamDecider, [changed(BEN, 'owner', 'member'), changed(BEN, 'member', 'owner')])
      .when(remove(ADA, 'owner', [ADA, BEN]))
      .thenEvents([removed(ADA)]);
  });
});

describe('a user of a team', () => {
  it('who was removed has no role to change', () => {
    given(teamDecider, [removed(ADA)])
      .when(change(ADA, 'owner', 'member', [BEN]))
      .thenRefused('user_not_found');
  });

  it('gets a role once', () => {
    given(teamDecider, [changed(ADA, 'read-only', 'member')])
      .when(change(ADA, 'read-only', 'member', [BEN]))
      .thenEvents([]);
  });
});

describe('an invitation', () => {
  const invite = (note = 'Ada, sales', made_by: string | null = BEN) =>
    ({
      type: 'Invite',
      partner_id,
      invitation_id,
      role: 'member',
      made_by,
      note,
      second_factor: false,
      digest,
      at: AT,
    }) as const;
  const made = (id = invitation_id, made_by: string | null = BEN): TeamEvent => ({
    type: 'partners.InvitationMade.v1',
    data: {
      partner_id,
      invitation_id: id,
      role: 'member',
      made_by,
      note: 'Ada, sales',
      second_factor: false,
      digest,
      made_at: at,
      expires_at: new Date(AT + 72 * HOUR).toISOString(),
    },
  });
  const accept = (user_id: string, when = AT): TeamCommand => ({
    type: 'AcceptInvitation',
    partner_id,
    invitation_id,
    user_id,
    at: when,
  });
  const accepted = (user_id: string): TeamEvent => ({
    type: 'partners.InvitationAccepted.v1',
    data: { user_id, partner_id, invitation_id, role: 'member', accepted_at: at },
  });
  const withdraw = { type: 'WithdrawInvitation', partner_id, invitation_id, at: AT } as const;
  const withdrawn: TeamEvent = {
    type: 'partners.InvitationWithdrawn.v1',
    data: { partner_id, invitation_id, role: 'member', withdrawn_at: at },
  };

  it('lives for 72 hours', () => {
    given(teamDecider, []).when(invite()).thenEvents([made()]);
    given(teamDecider, [made()])
      .when(accept(ADA, AT + INVITATION_MS))
      .thenRefused('invitation_expired');
    const last = teamDecider.decide(
      accept(ADA, AT + INVITATION_MS - 1),
      teamDecider.evolve(teamDecider.initial, made()),
    );
    expect(last.ok).toBe(true);
  });

  it('is accepted by one user, who may go on after a crash', () => {
    given(teamDecider, [made()])
      .when(accept(ADA))
      .thenEvents([accepted(ADA)]);
    given(teamDecider, [made(), accepted(ADA)])
      .when(accept(BEN))
      .thenRefused('invitation_used');
  });

  it('is withdrawn once, and is not accepted any more', () => {
    given(teamDecider, [made()]).when(withdraw).thenEvents([withdrawn]);
    given(teamDecider, [made(), withdrawn]).when(accept(ADA)).thenRefused('invitation_withdrawn');
  });

  it('is not withdrawn once it is accepted', () => {
    given(teamDecider, [made(), accepted(ADA)])
      .when(withdraw)
      .thenRefused('invitation_used');
  });

  it('has to exist', () => {
    given(teamDecider, []).when(withdraw).thenRefused('invitation_not_found');
    given(teamDecider, []).when(accept(ADA)).thenRefused('invitation_not_found');
  });

  it.each(['a'.repeat(101), 'a\u0000b', '\ud800'])('has no note like %j', (note) => {
    given(teamDecider, []).when(invite(note)).thenRefused('invalid_note');
  });

  it('is one of at most a hundred that are open', () => {
    const ids = Array.from({ length: MAX_INVITATIONS }, (_, n) => `open ${n}`);
    given(
      teamDecider,
      ids.map((id) => made(id)),
    )
      .when(invite())
      .thenRefused('invitation_limit');
  });

  it('ends when the owner who made it is lowered or removed, and another owner’s stays', () => {
    const events = [made(), made('of another owner', CAS), made('of an operator', null)];
    given(teamDecider, events)
      .when(change(BEN, 'owner', 'member', [ADA, BEN]))
      .thenEvents([changed(BEN, 'owner', 'member'), withdrawn]);
    given(teamDecider, events)
      .when(remove(BEN, 'owner', [ADA, BEN]))
      .thenEvents([removed(BEN), withdrawn]);
  });

  it('ends once: one that was used, withdrawn or has expired is left as it is', () => {
    for (const ended of [accepted(ADA), withdrawn])
      given(teamDecider, [made(), ended])
        .when(remove(BEN, 'owner', [ADA, BEN]))
        .thenEvents([removed(BEN)]);
    const late = AT + INVITATION_MS;
    const removal = teamDecider.decide(
      { ...remove(BEN, 'owner', [ADA, BEN]), at: late },
      teamDecider.evolve(teamDecider.initial, made()),
    );
    expect(removal).toMatchObject({ ok: true, value: [{ type: 'partners.MemberRemoved.v1' }] });
  });

  it('is not made by a user who has just ceased to be an owner', () => {
    for (const event of [changed(BEN, 'owner', 'member'), removed(BEN)])
      given(teamDecider, [event]).when(invite()).thenRefused('owner_required');
    given(teamDecider, [changed(BEN, 'owner', 'member'), changed(BEN, 'member', 'owner')])
      .when(invite())
      .thenEvents([made()]);
  });
});

describe('a second factor', () => {
  const enable = { type: 'EnableSecondFactor', partner_id, user_id: ADA, at: AT } as const;
  const enabled: TeamEvent = {
    type: 'partners.SecondFactorEnabled.v1',
    data: { user_id: ADA, partner_id, enabled_at: at },
  };

  it('is recorded when it is turned on and off', () => {
    given(teamDecider, []).when(enable).thenEvents([enabled]);
    given(teamDecider, [enabled])
      .when({ ...enable, type: 'DisableSecondFactor' })
      .thenEvents([
        { type: 'partners.SecondFactorDisabled.v1', data: { user_id: ADA, partner_id, disabled_at: at } },
      ]);
  });

  it('is required of a team, or not', () => {
    given(teamDecider, [])
      .when({ type: 'RequireSecondFactor', partner_id, required: true, at: AT })
      .thenEvents([
        { type: 'partners.SecondFactorRequired.v1', data: { partner_id, required: true, changed_at: at } },
      ]);
    given(teamDecider, [])
      .when({ type: 'RequireSecondFactor', partner_id, required: false, at: AT })
      .thenEvents([]);
  });
});
