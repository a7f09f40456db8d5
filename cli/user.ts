import type { Command } from 'commander';
import { changeUser, createUser, userIdOf } from '../commands/partners/manage-user.ts';
import { hashPassword, newPassword } from '../platform/crypto/passwords.ts';
import { forgetPassword, setPassword } from '../processors/partners/logins.ts';
import { listUsers } from '../queries/partners/partners.ts';
import { partnerOf } from './partner.ts';
import { print } from './print.ts';
import { Refused, type Session, withSession } from './session.ts';

/** @returns a password that the user must change first */
async function giveFirstPassword({ pool, clock }: Session, userId: string): Promise<string> {
  const password = newPassword();
  const hash = await hashPassword(password);
  await setPassword(pool, { userId, hash, isFirst: true, at: clock.now() });
  return password;
}

async function makeUser(session: Session, name: string, partner: string, json: boolean): Promise<void> {
  const { partner_id } = await partnerOf(session, partner);
  const made = await createUser(session.store, { partner_id, name }, session.context);
  if (!made.ok) throw new Refused(`${made.refusal}: ${name}`);
  const { user_id, position } = made.value;
  const password = await giveFirstPassword(session, user_id).catch((error: unknown) => {
    process.stderr.write(
      'doorplate: the user stands without a password: see doorplate user reset-password\n',
    );
    throw error;
  });
  print({ user_id, partner_id, name, password }, json);
  await session.shown(position);
}

/** Adds `doorplate user create|list|reset-password|remove`. */
export function addUserCommands(program: Command): void {
  const user = program.command('user').description('users of the dashboard');

  user
    .command('create <name>')
    .description('make a user; the first password is shown this once')
    .requiredOption('--partner <partner>', 'the partner, by id or name')
    .option('--json', 'print JSON', false)
    .action((name: string, { partner, json }: { partner: string; json: boolean }) =>
      withSession((session) => makeUser(session, name, partner, json)),
    );

  user
    .command('list')
    .description('the users of a partner, or of all')
    .option('--partner <partner>', 'the partner, by id or name')
    .option('--json', 'print JSON', false)
    .action(({ partner, json }: { partner?: string; json: boolean }) =>
      withSession(async (session) => {
        await session.projected(await session.store.head());
        const partnerId = partner === undefined ? null : (await partnerOf(session, partner)).partner_id;
        print([...(await listUsers(session.db, partnerId))], json);
      }),
    );

  user
    .command('reset-password <name>')
    .description('give a user a new first password, shown this once, and end all their logins')
    .option('--json', 'print JSON', false)
    .action((name: string, { json }: { json: boolean }) =>
      withSession(async (session) => {
        const reset = await changeUser(session.store, 'ResetPassword', userIdOf(name), session.context);
        if (!reset.ok) throw new Refused(`${reset.refusal}: ${name}`);
        const { user_id } = reset.value;
        print({ user_id, name, password: await giveFirstPassword(session, user_id) }, json);
      }),
    );

  user
    .command('remove <name>')
    .description('end a user and all their logins for ever')
    .option('--json', 'print JSON', false)
    .action((name: string, { json }: { json: boolean }) =>
      withSession(async (session) => {
        const removed = await changeUser(session.store, 'RemoveUser', userIdOf(name), session.context);
        if (!removed.ok) throw new Refused(`${removed.refusal}: ${name}`);
        const { user_id, position } = removed.value;
        await forgetPassword(session.pool, user_id);
        print({ user_id, name, removed: true }, json);
        await session.shown(position);
      }),
    );
}
