import type { Command } from 'commander';
import { createPartner } from '../../commands/partners/manage-partner.ts';
import { findPartner, listPartners } from '../../read-api/partner-rows.ts';
import { print } from './print.ts';
import { Refused, type Session, withSession } from './session.ts';

/** The partner of this id or name. @throws Refused when there is none */
export const partnerOf = async ({ db, store, projected }: Session, idOrName: string) => {
  await projected(await store.head());
  const partner = await findPartner(db, idOrName);
  if (!partner) throw new Refused(`partner_not_found: ${idOrName}`);
  return partner;
};

/** `doorplate partner create|list`. */
export const addPartnerCommands = (program: Command): void => {
  const partner = program.command('partner').description('partner accounts');

  partner
    .command('create <name>')
    .description('make a partner account')
    .option('--json', 'print JSON', false)
    .action((name: string, { json }: { json: boolean }) =>
      withSession(async ({ store, context, shown }) => {
        const created = await createPartner(store, name, context);
        if (!created.ok) throw new Refused(`${created.refusal}: ${name}`);
        print({ partner_id: created.value.partner_id, name }, json);
        await shown(created.value.position);
      }),
    );

  partner
    .command('list')
    .description('all partner accounts')
    .option('--json', 'print JSON', false)
    .action(({ json }: { json: boolean }) =>
      withSession(async ({ db, store, projected }) => {
        await projected(await store.head());
        print([...(await listPartners(db))], json);
      }),
    );
};
