import { expect, it } from 'vitest';

import type { Visit } from '../../dashboard/api.ts';
import { type AccountDeps, accountPages } from '../../dashboard/pages/account.ts';

/** The status of a password change, and the lengths of the passwords that were checked for weakness. */
const changeTo = async (password: string, wait: number | null = null) => {
  const checked: number[] = [];
  const deps: AccountDeps = {
    admitForm: async () => wait,
    tooMany: async () => null,
    changePassword: async () => 'token',
    weakness: (text) => {
      checked.push(text.length);
      return null;
    },
    countLogins: async () => 1,
    endLogins: async () => undefined,
  };
  const visit = {
    user: { name: 'anna', is_first: false },
    csrf: 'csrf',
    form: new URLSearchParams({ current: 'the one before', password, again: password }),
  } as unknown as Visit;
  const page = accountPages(deps).find(
    ({ method, path }) => method === 'POST' && path === '/dashboard/password',
  );
  const answer = await page?.handle(visit);
  return { status: answer?.status, checked, retryAfter: answer?.headers?.['retry-after'] };
};

it('checks the strength only of passwords of an allowed length, so that a form of 64 KiB costs nothing', async () => {
  // 60,001 characters blocked the event loop for over a second.
  expect(await changeTo(`${'a'.repeat(30_000)}b${'a'.repeat(30_000)}`)).toMatchObject({
    status: 400,
    checked: [],
  });
  expect(await changeTo('a'.repeat(201))).toMatchObject({ status: 400, checked: [] });
  expect(await changeTo('correct horse battery staple')).toMatchObject({ status: 303, checked: [28] });
});

it('answers 429 with Retry-After to more forms than the rate allows, and checks nothing', async () => {
  expect(await changeTo('correct horse battery staple', 30)).toEqual({
    status: 429,
    checked: [],
    retryAfter: '30',
  });
});
