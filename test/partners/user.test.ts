import { describe, expect, it } from 'vitest';
import type { UserEvent } from '../../domain/partners/events.ts';
import { userDecider } from '../../domain/partners/user.ts';
import { given } from '../domain/deciding.ts';
import { ANNA, AT } from '../lookup/lookup-events.ts';

const at = new Date(AT).toISOString();
const user_id = '5f0c3f0e-3f0e-4f0e-8f0e-3f0e3f0e3f0e';
const ofUser = { user_id, partner_id: ANNA };
const made: UserEvent = {
  type: 'partners.UserCreated.v1',
  data: { ...ofUser, name: 'Ada', created_at: at, role: 'member' },
};
const removed: UserEvent = { type: 'partners.UserRemoved.v1', data: { ...ofUser, removed_at: at } };
const create = (name = 'Ada') =>
  ({ type: 'CreateUser', user_id, partner_id: ANNA, name, role: 'member', at: AT }) as const;
const change = (type: 'ResetPassword' | 'ChangePassword' | 'RemoveUser') =>
  ({ type, user_id, at: AT }) as const;

describe('a dashboard user', () => {
  it.each([
    ...['', ' Ada', 'a'.repeat(101), 'A\u0000da', 'Ａda', 'e\u0301'],
    ...[
      'ada\u200b',
      '\u202eada',
      'ad\u00ada',
      'ada\ufe0f',
      'ada\u3164',
      'a\u2028da',
      'ada\ue000',
      '\u{e0061}ada',
    ],
    // With one letter of Cyrillic, Greek, Armenian or Cherokee.
    ...['\u0430da', 'ad\u03b1', 'ad\u0561', '\u13aada', '\u0430δ', 'Иван 山田', '한か', 'ㄅか'],
  ])('may not have the name %j', (name) => {
    given(userDecider, []).when(create(name)).thenRefused('invalid_name');
  });

  it.each([
    ...[
      'ada',
      'Zoë Müller-Lüdenscheidt',
      "O'Brien 2",
      'Иван Петров',
      'Αδα',
      'עדה',
      'عائشة',
      'अदा',
      '김철수 Kim',
    ],
    ...[
      '山田 Taro',
      '山田 たろう タロー',
      '王小明 Wang ㄨㄤˊ',
      'ᏣᎳᎩ',
      'ⵜⵉⴼⵉⵏⴰⵖ',
      '1234',
      '☕ bar',
      'Đặng Thị',
    ],
  ])('may have the name %j', (name) => {
    expect(userDecider.decide(create(name), userDecider.initial).ok).toBe(true);
  });

  it("has a name that is never given again, also after the user's removal", () => {
    given(userDecider, [made]).when(create()).thenRefused('user_exists');
    given(userDecider, [made, removed]).when(create()).thenRefused('user_exists');
  });

  it('has a free name again once its partner was deleted, a removed one too', () => {
    const released: UserEvent = { type: 'partners.UserReleased.v1', data: { ...ofUser, released_at: at } };
    const release = { type: 'ReleaseUser', ...ofUser, at: AT } as const;
    given(userDecider, [made]).when(release).thenEvents([released]);
    given(userDecider, [made, removed]).when(release).thenEvents([released]);
    const state = [made, removed, released].reduce(userDecider.evolve, userDecider.initial);
    expect(userDecider.decide(create(), state)).toEqual({ ok: true, value: [made] });
    const again: UserEvent = { ...made, data: { ...made.data, partner_id: user_id } } as UserEvent;
    given(userDecider, [made, released, again]).when(release).thenEvents([]);
  });

  it('is removed once', () => {
    given(userDecider, [made]).when(change('RemoveUser')).thenEvents([removed]);
  });

  it.each(['ResetPassword', 'ChangePassword', 'RemoveUser'] as const)(
    'does not exist for %s before its creation',
    (type) => {
      given(userDecider, []).when(change(type)).thenRefused('user_not_found');
    },
  );

  it('has no password once it is removed', () => {
    given(userDecider, [made, removed]).when(change('ResetPassword')).thenRefused('user_not_found');
    given(userDecider, [made, removed]).when(change('ChangePassword')).thenRefused('user_not_found');
  });
});
