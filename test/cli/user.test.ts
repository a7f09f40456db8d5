import { TOTP } from 'otpauth';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { invite } from '../../commands/partners/manage-team.ts';
import { userIdOf } from '../../commands/partners/manage-user.ts';
import { createSecondFactors } from '../../processors/partners/second-factor.ts';
import { listInvitations } from '../../queries/partners/team.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { doorplateHere, MASTER_KEY } from '../support/doorplate.ts';

let api: TestApi;
let partner: string;

beforeAll(async () => {
  api = await startApi({ clock: { now: () => Date.now() } });
  partner = (await api.key()).partner_id;
}, 60_000);
afterAll(() => api.close());

const user = async (...args: string[]) => {
  const { code, stdout, stderr } = await doorplateHere(['user', ...args, '--json'], {
    DATABASE_URL: api.runtime.databaseUrl,
    DATA_DIR: api.runtime.dataDir,
    MASTER_KEY,
  });
  return { code, stderr, made: code === 0 ? JSON.parse(stdout) : null };
};
const listed = async (): Promise<Record<string, unknown>> => {
  const { made } = await user('list', '--partner', partner);
  return Object.fromEntries(
    made.map((one: { name: string; role: string; second_factor: boolean; removed_at: string | null }) => [
      one.name,
      [one.role, one.second_factor, one.removed_at !== null],
    ]),
  );
};

describe('doorplate user', () => {
  it('gives roles, turns a second factor off, and keeps the last owner', async () => {
    expect((await user('create', '--partner', partner, 'Olga')).made).toMatchObject({ role: 'owner' });
    const made = await user('create', '--partner', partner, '--role', 'read-only', 'Rob');
    expect(made.made).toMatchObject({ role: 'read-only' });
    expect((await user('create', '--partner', partner, '--role', 'king', 'Kim')).code).toBe(2);

    const factors = createSecondFactors(api.runtime);
    const rob = userIdOf('Rob');
    const { secret, proposal } = await factors.propose(rob, 'Rob', 'a login');
    const code = new TOTP({ secret }).generate();
    await factors.enable(rob, { proposal, about: 'a login', code, token: 'a token' });
    expect(await listed()).toEqual({ Olga: ['owner', false, false], Rob: ['read-only', true, false] });

    expect((await user('reset-password', 'Rob')).code).toBe(0);
    expect(await factors.isSetUp(rob)).toBe(true);
    expect((await user('reset-password', '--second-factor', 'Rob')).made).toHaveProperty('password');
    expect(await factors.isSetUp(rob)).toBe(false);

    const refused = await user('remove', 'Olga');
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('last owner of the partner. Make another one first');
    await user('create', '--partner', partner, 'Otto');
    const { store } = api.runtime;
    const context = { correlationId: 'a test', causationId: 'a test', at: Date.now() };
    const invitation = { partner_id: partner, role: 'owner', note: '' } as const;
    await invite(store, invitation, { ...context, userId: userIdOf('Olga') });
    await invite(store, invitation, { ...context, userId: userIdOf('Otto') });
    expect((await user('remove', 'Olga')).code).toBe(0);
    expect((await user('remove', 'Olga')).code).toBe(0);
    const open = await listInvitations(api.runtime.db, partner, new Date().toISOString());
    expect(open.map(({ made_by }) => made_by)).toEqual(['Otto']);
    expect((await user('remove', 'Nobody')).stderr).toContain('user_not_found: Nobody');
    expect(await listed()).toEqual({
      Olga: ['owner', false, true],
      Rob: ['read-only', false, false],
      Otto: ['owner', false, false],
    });
  }, 120_000);
});
