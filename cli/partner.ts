import type { Command } from 'commander';
import { createPartner, setCeilings } from '../commands/partners/manage-partner.ts';
import { isoTime } from '../domain/kernel/time.ts';
import type { Ceilings } from '../domain/partners/events.ts';
import { monthEnd, monthStart } from '../queries/billing/reveal-units.ts';
import { findDeletedPartner, findPartner, listPartners } from '../queries/partners/partners.ts';
import { readPartnerUse } from '../read-api/usage/partner-usage.ts';
import { allowance, given, type LimitOptions, limitsIn, wholeFrom } from './options.ts';
import { print } from './print.ts';
import { progressBar } from './progress.ts';
import { Refused, type Session, withSession } from './session.ts';

/** Finds a partner by id or name. @throws Refused if there is none */
export async function partnerOf({ db, store, projected }: Session, idOrName: string) {
  await projected(await store.head());
  const partner = await findPartner(db, idOrName);
  if (!partner) throw new Refused(`partner_not_found: ${idOrName}`);
  return partner;
}

/** Finds the partner of a ledger, which outlives its partner. @throws Refused if there is none */
export async function ledgerOf(session: Session, idOrName: string): Promise<string> {
  await session.projected(await session.store.head());
  const { db } = session;
  const partner = (await findPartner(db, idOrName)) ?? (await findDeletedPartner(db, idOrName));
  if (!partner) throw new Refused(`partner_not_found: ${idOrName}`);
  return partner.partner_id;
}

type CeilingOptions = LimitOptions & { readonly keys?: number; readonly domains?: number };

const withCeilings = (command: Command): Command =>
  command
    .option('--requests-per-second <n>', 'the most that dashboard users may give a key (50)', wholeFrom(1))
    .option('--new-enrichments-per-day <n>', 'the same, a UTC day; none: no ceiling (none)', allowance)
    .option('--pending-enrichments <n>', 'the same, unfinished ones (10000)', wholeFrom(0))
    .option(
      '--keys <n>',
      'keys, neither revoked nor expired, that dashboard users may make (100)',
      wholeFrom(0),
    )
    .option('--domains <n>', 'custom domains of the partner (100)', wholeFrom(0))
    .option('--company-signals', 'dashboard users may give a key company signals')
    .option('--no-company-signals', 'they may not (the default)')
    .option('--json', 'print JSON', false);

const ceilingsIn = (options: CeilingOptions): Partial<Ceilings> => ({
  ...limitsIn(options),
  ...given({ keys: options.keys, domains: options.domains }),
});

/** Adds `doorplate partner create|update|list`. @returns the command `partner` */
export function addPartnerCommands(program: Command): Command {
  const partner = program.command('partner').description('partner accounts');

  withCeilings(partner.command('create <name>').description('make a partner account')).action(
    (name: string, options: CeilingOptions) =>
      withSession(async ({ store, context, shown }) => {
        const created = await createPartner(store, name, context, ceilingsIn(options));
        if (!created.ok) throw new Refused(`${created.refusal}: ${name}`);
        print({ partner_id: created.value.partner_id, name }, options.json);
        await shown(created.value.position);
      }),
  );

  withCeilings(
    partner.command('update <partner>').description('change ceilings; keys that exist stay as they are'),
  ).action((idOrName: string, options: CeilingOptions) =>
    withSession(async (session) => {
      const { partner_id } = await partnerOf(session, idOrName);
      const ceilings = ceilingsIn(options);
      const set = await setCeilings(session.store, { partner_id, ceilings }, session.context);
      if (!set.ok) throw new Refused(`${set.refusal}: ${idOrName}`);
      await session.shown(set.value.position);
      print((await findPartner(session.db, partner_id)) ?? {}, options.json);
    }),
  );

  partner
    .command('list')
    .description('all partner accounts, with their use of this month')
    .option('--json', 'print JSON', false)
    .action(({ json }: { json: boolean }) => withSession((session) => listWithUse(session, json)));
  return partner;
}

/** One statement a partner, so that none is long however many there are. */
async function listWithUse({ db, store, clock, projected }: Session, json: boolean): Promise<void> {
  await projected(await store.head());
  const at = isoTime(clock.now());
  const month = at.slice(0, 7);
  const ofMonth = { from: monthStart(month), to: monthEnd(month) };
  const partners = await listPartners(db, at);
  const bar = progressBar('reading the use of partners', partners.length);
  const rows = [];
  for (const [nth, partner] of partners.entries()) {
    bar.update(nth);
    rows.push({ ...partner, month, ...(await readPartnerUse(db, partner.partner_id, ofMonth)) });
  }
  bar.end();
  print(json ? rows : rows.map(asLine), json);
}

const asLine = (
  row: {
    readonly [Name in (typeof SHOWN)[number]]: string | number;
  },
): Record<string, string | number> => Object.fromEntries(SHOWN.map((name) => [name, row[name]]));

const SHOWN = [
  'partner_id',
  'name',
  'state',
  'live_keys',
  'trackers',
  'month',
  'lookups',
  'sessions',
  'units',
  'created_at',
] as const;
