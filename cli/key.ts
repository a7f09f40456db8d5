import type { Command } from 'commander';
import { createKey, newApiKey, revokeKey, updateKey } from '../commands/partners/manage-partner.ts';
import type { KeyLimits } from '../domain/partners/events.ts';
import { DEFAULT_LIMITS } from '../domain/partners/partner.ts';
import { keyFileIn } from '../platform/crypto/master-key.ts';
import { RotationImpossible, rotateMaster } from '../processors/rotate-master.ts';
import { findKey, listKeys } from '../queries/partners/partners.ts';
import { allowance, given, instant, type LimitOptions, limitsIn, wholeFrom } from './options.ts';
import { partnerOf } from './partner.ts';
import { print } from './print.ts';
import { Refused, type Session, withSession } from './session.ts';

/** Longer than any request or append, so that running processes have finished writing under the previous key. */
const SETTLE_MS = 15_000;

/** Adds `doorplate keys rotate-master`. */
export function addMasterKeyCommands(program: Command): void {
  program
    .command('keys')
    .description('keys that secrets are sealed under at rest')
    .command('rotate-master')
    .description('seal everything under MASTER_KEY, or under a new key that is put into the data folder')
    .option('--json', 'print JSON', false)
    .action(({ json }: { json: boolean }) =>
      withSession(async (session) => {
        const { config, dataDir, context } = session;
        const keyFile = config.MASTER_KEY ? null : keyFileIn(dataDir);
        if (keyFile !== null) {
          process.stderr.write(
            `doorplate: this takes ${SETTLE_MS / 1_000} s; if it is stopped, run it again\n`,
          );
        }
        const rotating = rotateMaster({ ...session, keyFile, settleMs: SETTLE_MS }, context);
        const resealed = await rotating.catch((error: unknown) => {
          throw error instanceof RotationImpossible ? new Refused(error.message) : error;
        });
        print(resealed, json);
      }),
    );
}

const NO_EXPIRY = 'never';

type KeyOptions = LimitOptions & { readonly expiresAt?: string };

const expiry = (text: string): string => (text === NO_EXPIRY ? NO_EXPIRY : instant(text));

const withLimits = (command: Command): Command =>
  command
    .option('--requests-per-second <n>', 'requests a second', wholeFrom(1))
    .option('--new-enrichments-per-day <n>', 'new enrichments a UTC day; none: no cap', allowance)
    .option('--pending-enrichments <n>', 'unfinished enrichments of the partner', wholeFrom(0))
    .option('--company-signals', 'answers carry company_signals')
    .option('--no-company-signals', 'answers carry no company_signals')
    .option('--expires-at <time>', 'ISO 8601; never: no expiry', expiry)
    .option('--json', 'print JSON', false);

const keyLimitsIn = (options: KeyOptions): Partial<KeyLimits> => ({
  ...limitsIn(options),
  ...given({ expires_at: options.expiresAt === NO_EXPIRY ? null : options.expiresAt }),
});

async function keyOf({ db, store, projected }: Session, keyId: string) {
  await projected(await store.head());
  const key = await findKey(db, keyId);
  if (!key) throw new Refused(`key_not_found: ${keyId}`);
  return key;
}

type CreateOptions = KeyOptions & { readonly partner: string; readonly name: string };

async function makeKey(session: Session, options: CreateOptions): Promise<void> {
  const { partner_id } = await partnerOf(session, options.partner);
  const limits = { ...DEFAULT_LIMITS, ...keyLimitsIn(options) };
  const wanted = {
    partner_id,
    name: options.name,
    limits,
    api_key: newApiKey(),
    by: 'operator',
  } as const;
  const made = await createKey(session.store, wanted, session.context).catch((error: unknown) => {
    // The key may be stored; printing it makes a retry with the same key possible.
    process.stderr.write(`doorplate: it is not known whether this key stands: ${wanted.api_key}\n`);
    throw error;
  });
  if (!made.ok) throw new Refused(`${made.refusal}: ${options.name}`);
  const { key_id, api_key, position } = made.value;
  print({ key_id, api_key, partner_id, name: options.name, ...limits }, options.json);
  await session.shown(position);
}

/** Adds `doorplate key create|list|update|revoke`. */
export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('API keys of partners');

  withLimits(key.command('create').description('make a key; it is shown this once'))
    .requiredOption('--partner <partner>', 'the partner, by id or name')
    .requiredOption('--name <name>', 'the name of the key')
    .action((options: CreateOptions) => withSession((session) => makeKey(session, options)));

  key
    .command('list')
    .description('the keys of a partner, without their secrets')
    .requiredOption('--partner <partner>', 'the partner, by id or name')
    .option('--json', 'print JSON', false)
    .action((options: { partner: string; json: boolean }) =>
      withSession(async (session) => {
        const { partner_id } = await partnerOf(session, options.partner);
        print([...(await listKeys(session.db, partner_id))], options.json);
      }),
    );

  withLimits(key.command('update <key_id>').description('change limits of a key')).action(
    (keyId: string, options: KeyOptions) =>
      withSession(async (session) => {
        const { partner_id } = await keyOf(session, keyId);
        const limits = keyLimitsIn(options);
        const updated = await updateKey(
          session.store,
          { partner_id, key_id: keyId, limits, by: 'operator' },
          session.context,
        );
        if (!updated.ok) throw new Refused(`${updated.refusal}: ${keyId}`);
        await session.shown(updated.value.position);
        print((await findKey(session.db, keyId)) ?? {}, options.json);
      }),
  );

  key
    .command('revoke <key_id>')
    .description('end a key for ever, in every process within a second')
    .option('--json', 'print JSON', false)
    .action((keyId: string, { json }: { json: boolean }) =>
      withSession(async (session) => {
        const { partner_id } = await keyOf(session, keyId);
        const revoked = await revokeKey(session.store, { partner_id, key_id: keyId }, session.context);
        if (!revoked.ok) throw new Refused(`${revoked.refusal}: ${keyId}`);
        await session.shown(revoked.value.position);
        print((await findKey(session.db, keyId)) ?? {}, json);
      }),
    );
}
