import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { endDeletedPartners } from '../bin/retention.ts';
import { changePartner } from '../commands/partners/manage-partner.ts';
import { AnotherRuns } from '../platform/postgres/transactions.ts';
import { ConsumersBehind } from '../processors/retire-streams.ts';
import { findDeletedPartner, findPartner } from '../queries/partners/partners.ts';
import { partnerOf } from './partner.ts';
import { print, printable } from './print.ts';
import { progressBar } from './progress.ts';
import { Refused, type Session, withSession, withWorkers } from './session.ts';

interface Options {
  readonly json: boolean;
}

interface DeleteOptions extends Options {
  readonly yes: boolean;
}

/** Adds `doorplate partner suspend|resume|delete` (docs/runbook.md, A partner's life). */
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

  partner
    .command('delete <partner>')
    .description('end a partner for ever, with all that it has but its ledger and counts')
    .option('--yes', 'do not ask for the name', false)
    .option('--json', 'print JSON', false)
    .action((idOrName: string, options: DeleteOptions, command: Command) => {
      if (!options.yes && process.stdin.isTTY !== true)
        command.error('error: without a terminal to type the name on, say --yes: partner delete acme --yes');
      return withWorkers((session) => deletePartner(session, idOrName, options));
    });
}

async function changeState(
  session: Session,
  type: 'SuspendPartner' | 'ResumePartner',
  idOrName: string,
  json: boolean,
): Promise<void> {
  const { partner_id, name } = await partnerOf(session, idOrName);
  await change(session, type, partner_id);
  print({ partner_id, name, state: type === 'SuspendPartner' ? 'suspended' : 'active' }, json);
}

async function change(
  session: Session,
  type: Parameters<typeof changePartner>[1],
  partnerId: string,
): Promise<void> {
  const changed = await changePartner(session.store, type, partnerId, session.context);
  if (!changed.ok) throw new Refused(`${changed.refusal}: ${partnerId}`);
  await session.shown(changed.value.position);
}

async function deletePartner(session: Session, idOrName: string, options: DeleteOptions): Promise<void> {
  const { db, store, projected } = session;
  await projected(await store.head());
  const partner = (await findPartner(db, idOrName)) ?? (await findDeletedPartner(db, idOrName));
  if (partner === null) throw new Refused(`partner_not_found: ${idOrName}`);
  const { partner_id, name } = partner;
  const isDeleted = 'ended_at' in partner;
  if (!isDeleted) {
    if (!options.yes && !(await isTyped(name)))
      throw new Refused(`not deleted: that is not the name ${name}`);
    await change(session, 'DeletePartner', partner_id);
  }
  await takeApart(session);
  print(
    { partner_id, name, state: isDeleted && partner.ended_at !== null ? 'ended' : 'deleted' },
    options.json,
  );
}

/** Does what a running service does too, and leaves to it what it is at already. */
async function takeApart(session: Session): Promise<void> {
  const bar = progressBar('ending sessions', null);
  let ended = 0;
  const count = (sessions: number): void => {
    ended += sessions;
    bar.update(ended);
  };
  try {
    await endDeletedPartners(session, new AbortController().signal, count);
  } catch (error) {
    if (!(error instanceof AnotherRuns || error instanceof ConsumersBehind)) throw error;
    process.stderr.write('doorplate: deleted; the running service ends what the partner had\n');
  } finally {
    bar.end();
  }
}

async function isTyped(name: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const question =
    `This ends ${printable(name)} for ever: keys, websites, domains, webhooks, users, sessions and reveals.\n` +
    'Type its name: ';
  try {
    // An end of the input answers no question.
    const typed = await Promise.race([terminal.question(question), once(terminal, 'close')]);
    return typed === name;
  } finally {
    terminal.close();
  }
}
