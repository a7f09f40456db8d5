import { expect, it } from 'vitest';
import { type AccountDeps, accountPages } from '../../dashboard/pages/account.ts';
import type { Visit } from '../../dashboard/visit.ts';

/** The status of a password change, and the lengths of the passwords that were checked for weakness. */
const changeTo = async (password: string) => {
  const checked: number[] = [];
  const deps: AccountDeps = {
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
  return { status: answer?.status, checked };
};

it('checks the strength only of passwords of an allowed length, so that a form of 64 KiB costs nothing', async () => {
  // 60,001 characters blocked the event loop for over a second.
  expect(await changeTo(`${'a'.repeat(30_000)}b${'a'.repeat(30_000)}`)).toEqual({ status: 400, checked: [] });
  expect(await changeTo('a'.repeat(201))).toEqual({ status: 400, checked: [] });
  expect(await changeTo('correct horse battery staple')).toEqual({ status: 303, checked: [28] });
});
