import type { Command } from 'commander';
import { changePartner } from '../commands/partners/manage-partner.ts';
import { partnerOf } from './find-partner.ts';
import { print } from './print.ts';
import { Refused, type Session, withSession } from './session.ts';

interface Options {
  readonly json: boolean;
}

/** Adds `doorplate partner suspend|resume` (docs/operations.md, A partner's life). */
export function addPartnerLifeCommands(partner: Command): void {
  partner
    .command('suspend <partner>')
    .description('refuse keys and websites, hold deliveries and reveals; its users only read')
    .option('--json', 'print JSON', false)
    .action((idOrName: string, { json }: Options) =>
      withSession((session) => changeState(session, 'SuspendPartner', idOrName, json)),
    );

  partner
    .command('resume <partner>')
    .description('end a suspension: what was held goes on')
    .option('--json', 'print JSON', false)
    .action((idOrName: string, { json }: Options) =>
      withSession((session) => changeState(session, 'ResumePartner', idOrName, json)),
    );
}

async function changeState(
  session: Session,
  type: 'SuspendPartner' | 'ResumePartner',
  idOrName: string,
  json: boolean,
): Promise<void> {
  const { partner_id, name } = await partnerOf(session, idOrName);
  const changed = await changePartner(session.store, type, partner_id, session.context);
  if (!changed.ok) throw new Refused(`${changed.refusal}: ${idOrName}`);
  await session.shown(changed.value.position);
  print({ partner_id, name, state: type === 'SuspendPartner' ? 'suspended' : 'active' }, json);
}
