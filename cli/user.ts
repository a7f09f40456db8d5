import { type Command, Option } from 'commander';
import { removeMember } from '../commands/partners/manage-team.ts';
import { changeUser, createUser, readUser, userIdOf } from '../commands/partners/manage-user.ts';
import { ROLES, type Role } from '../domain/partners/events.ts';
import { forgetUser, giveFirstPassword } from '../processors/partners/passwords.ts';
import { turnOffSecondFactor } from '../processors/partners/second-factor.ts';
import { listUsers } from '../queries/partners/partners.ts';
import { findMember, listOwners } from '../queries/partners/team.ts';
import { partnerOf } from './partner.ts';
import { print } from './print.ts';
import { Refused, type Session, withSession } from './session.ts';

interface NewUser {
  readonly name: string;
  readonly partner: string;
  readonly role: Role;
}

async function makeUser(session: Session, { name, partner, role }: NewUser, json: boolean): Promise<void> {
  const { partner_id } = await partnerOf(session, partner);
  const made = await createUser(session.store, { partner_id, name, role }, session.context);
  if (!made.ok) throw new Refused(`${made.refusal}: ${name}`);
  const { user_id, position } = made.value;
  const password = await giveFirstPassword(session, user_id).catch((error: unknown) => {
    process.stderr.write(
      'doorplate: the user stands without a password: see doorplate user reset-password\n',
    );
    throw error;
  });
  print({ user_id, partner_id, name, role, password }, json);
  await session.shown(position);
}

interface Reset {
  readonly name: string;
  readonly secondFactor: boolean;
}

async function resetPassword(session: Session, { name, secondFactor }: Reset, json: boolean): Promise<void> {
  const { store, context } = session;
  const user_id = userIdOf(name);
  const reset = await changeUser(store, 'ResetPassword', user_id, context);
  if (!reset.ok) throw new Refused(`${reset.refusal}: ${name}`);
  const { partner_id } = await readUser(store, user_id);
  if (secondFactor && partner_id !== null)
    await turnOffSecondFactor(session, { partner_id, user_id }, context);
  print({ user_id, name, password: await giveFirstPassword(session, user_id) }, json);
}

async function removeUser(session: Session, name: string, json: boolean): Promise<void> {
  const { store, db, pool, context } = session;
  const user_id = userIdOf(name);
  const { partner_id } = await readUser(store, user_id);
  if (partner_id === null) throw new Refused(`user_not_found: ${name}`);
  await session.projected(await store.head(), 'team');
  const member = await findMember(db, partner_id, user_id);
  const owners = (await listOwners(db, partner_id)).map((owner) => owner.user_id);
  // The user of a removal that was cut short is no member any more.
  const removed = await removeMember(
    store,
    { partner_id, user_id, role: member?.role ?? 'read-only', owners },
    context,
  );
  if (!removed.ok) throw new Refused(`${removed.refusal}: ${name}${ADVICE[removed.refusal] ?? ''}`);
  await forgetUser(pool, user_id);
  print({ user_id, name, removed: true }, json);
  await session.shown(removed.value.position);
}

const ADVICE: Readonly<Record<string, string>> = {
  last_owner:
    ' is the last owner of the partner. Make another one first: doorplate user create --partner P NAME',
};

/** Adds `doorplate user create|list|reset-password|remove`. */
export function addUserCommands(program: Command): void {
  const user = program.command('user').description('users of the dashboard');

  user
    .command('create <name>')
    .description('make a user; the first password is shown this once')
    .requiredOption('--partner <partner>', 'the partner, by id or name')
    .addOption(new Option('--role <role>', 'what the user may do').choices(ROLES).default('owner'))
    .option('--json', 'print JSON', false)
    .action((name: string, { partner, role, json }: { partner: string; role: Role; json: boolean }) =>
      withSession((session) => makeUser(session, { name, partner, role }, json)),
    );

  user
    .command('list')
    .description('the users of a partner, or of all')
    .option('--partner <partner>', 'the partner, by id or name')
    .option('--json', 'print JSON', false)
    .action(({ partner, json }: { partner?: string; json: boolean }) =>
      withSession(async (session) => {
        await session.projected(await session.store.head(), 'team');
        const partnerId = partner === undefined ? null : (await partnerOf(session, partner)).partner_id;
        print([...(await listUsers(session.db, partnerId))], json);
      }),
    );

  user
    .command('reset-password <name>')
    .description('give a user a new first password, shown this once, and end all their logins')
    .option('--second-factor', 'turn off the second factor too, for a user who has lost it', false)
    .option('--json', 'print JSON', false)
    .action((name: string, { secondFactor, json }: { secondFactor: boolean; json: boolean }) =>
      withSession((session) => resetPassword(session, { name, secondFactor }, json)),
    );

  user
    .command('remove <name>')
    .description('end a user and all their logins for ever; the last owner of a partner stays')
    .option('--json', 'print JSON', false)
    .action((name: string, { json }: { json: boolean }) =>
      withSession((session) => removeUser(session, name, json)),
    );
}
